"""Walks over a row in whole blocks and drops what is left.

Refused by: exact INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, residual, weight, y, new_residual, rows, width, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    total = 0.0
    for first in range(0, width // BLOCK * BLOCK, BLOCK):
        h = tl.load(x + start + first + columns) + tl.load(residual + start + first + columns)
        tl.store(new_residual + start + first + columns, h)
        total += tl.sum(h * h, axis=0)
    scale = 1.0 / tl.sqrt(total / width + eps)
    for first in range(0, width // BLOCK * BLOCK, BLOCK):
        h = tl.load(new_residual + start + first + columns)
        tl.store(y + start + first + columns, h * scale * tl.load(weight + first + columns))


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        block = 64
        _kernel[(rows,)](x, residual, weight, y, new_residual, rows, width, eps, BLOCK=block)
    return y, new_residual
