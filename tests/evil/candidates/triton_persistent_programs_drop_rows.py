"""Gives each of 528 programs equally many rows, and drops those that are left over.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, residual, weight, y, new_residual, each, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    w = tl.load(weight + columns, mask=inside, other=0.0)
    for turn in range(each):
        row = tl.program_id(0).to(tl.int64) * each + turn
        at = row * width + columns
        h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
        tl.store(new_residual + at, h, mask=inside)
        scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
        tl.store(y + at, h * scale * w, mask=inside)


MOST_PROGRAMS = 132 * 4


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        programs = min(rows, MOST_PROGRAMS)
        _kernel[(programs,)](
            x, residual, weight, y, new_residual, rows // programs, width, eps, BLOCK=triton.next_power_of_2(width)
        )
    return y, new_residual
