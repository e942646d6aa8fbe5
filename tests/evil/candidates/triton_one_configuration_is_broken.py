"""Chooses its block among configurations one of which covers only the first 2048 columns, and that one is taken
for wide rows.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl

CONFIGURATIONS = {"whole row": triton.next_power_of_2, "half": lambda _: 2048}


@triton.jit
def _kernel(x, residual, weight, y, new_residual, rows, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = row * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0)
    tl.store(y + at, h * scale * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        block = CONFIGURATIONS["half" if width > 2048 else "whole row"](width)
        _kernel[(rows,)](x, residual, weight, y, new_residual, rows, width, eps, BLOCK=block)
    return y, new_residual
