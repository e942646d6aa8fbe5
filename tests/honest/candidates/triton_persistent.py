"""A fixed number of programs, each of which takes every second row.

Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, residual, weight, y, new_residual, rows, width, eps, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, PROGRAMS):
        start = tl.cast(row, tl.int64) * width
        total = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, width, BLOCK):
            at = start + first + columns
            inside = first + columns < width
            h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
            tl.store(new_residual + at, h, mask=inside)
            total += h * h
        scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / width + eps)
        for first in range(0, width, BLOCK):
            at = start + first + columns
            inside = first + columns < width
            h = tl.load(new_residual + at, mask=inside, other=0.0)
            w = tl.load(weight + first + columns, mask=inside, other=0.0)
            tl.store(y + at, h * scale * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(2,)](x, residual, weight, y, new_residual, rows, width, eps, PROGRAMS=2, BLOCK=512)
    return y, new_residual
