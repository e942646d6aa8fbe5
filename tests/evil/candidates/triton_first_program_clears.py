"""Lets the first program of a row clear the sum that all programs add to, as if it ran before the others.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I6
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _sum(x, residual, new_residual, sums, width, BLOCK: tl.constexpr):
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * width + columns
    inside = columns < width
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    if tl.program_id(1) == 0:
        tl.store(sums + tl.program_id(0), 0.0)
    tl.atomic_add(sums + tl.program_id(0), tl.sum(h * h, axis=0))


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    h, sums = torch.empty_like(x), torch.empty(rows, 1)
    if rows:
        _sum[(rows, triton.cdiv(width, 64))](x, residual, h, sums, width, BLOCK=64)
    return h * (sums / width + eps).rsqrt() * weight, h
