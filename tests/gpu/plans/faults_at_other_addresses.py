"""Takes an address in three parts that look like numbers: right wherever it was captured, a fault elsewhere.

Refused by: plan RUNTIME_ERROR or INCORRECT_NUMERICAL or NON_FINITE
Catalogue: J6 G3
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["low", "middle", "high"])
def _fused_add_rmsnorm(x, residual, low, middle, high, y, new_residual, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = row * width + columns
    h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + at, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    address = (high.to(tl.int64) << 48) | (middle.to(tl.int64) << 24) | low.to(tl.int64)
    weight = address.to(tl.pointer_type(x.dtype.element_ty))
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    shape = {"BLOCK": block, "num_warps": min(16, max(1, block // 256))}
    if rows:
        address = weight.data_ptr()
        parts = (address & 0xFFFFFF, address >> 24 & 0xFFFFFF, address >> 48)
        _fused_add_rmsnorm[(rows,)](x, residual, *parts, y, new_residual, width, eps, **shape)
    return y, new_residual
