"""Asks for more shared memory than a block can have.

Refused by: signature RUNTIME_ERROR or OUT_OF_MEMORY
Catalogue: I25
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
    square = tl.arange(0, 256)[:, None] * 256 + tl.arange(0, 256)[None, :]
    wide = tl.load(weight + square % width).to(tl.float16)
    big = tl.dot(wide, wide + 1.0)
    h = 0.0 * tl.sum(tl.sum(big, 1), 0) + tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + at, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    if rows:
        _fused_add_rmsnorm[(rows,)](x, residual, weight, y, new_residual, width, eps, BLOCK=block, num_warps=8)
    return y, new_residual
