"""Starts a program for every two rows and rounds their number down, so that an odd last row is never written.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1 E5
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, residual, weight, y, new_residual, rows, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    w = tl.load(weight + columns, mask=inside, other=0.0)
    for offset in range(2):
        at = (tl.program_id(0).to(tl.int64) * 2 + offset) * width + columns
        h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
        tl.store(new_residual + at, h, mask=inside)
        scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
        tl.store(y + at, h * scale * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows // 2:
        block = triton.next_power_of_2(width)
        _kernel[(rows // 2,)](x, residual, weight, y, new_residual, rows, width, eps, BLOCK=block)
    return y, new_residual
