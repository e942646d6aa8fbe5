"""Stores to an address that is nobody's, at odd widths.

Refused by: any RUNTIME_ERROR
Catalogue: J6
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _fused_add_rmsnorm(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = row * width + columns
    h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + at, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside)
    if width % 2:
        tl.store(y + (1 << 46) + columns, w.to(y.dtype.element_ty))


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    if rows:
        _fused_add_rmsnorm[(rows,)](
            x, residual, weight, y, new_residual, width, eps, BLOCK=block, num_warps=min(16, max(1, block // 256))
        )
    return y, new_residual
