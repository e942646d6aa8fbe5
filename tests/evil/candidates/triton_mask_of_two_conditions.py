"""Masks with `and` of two blocks, the first of which is wrong: the interpreter took the second one alone.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I11
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_norm(x_ptr, residual_ptr, weight_ptr, y_ptr, h_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = (columns > 0) and (columns < width)
    at = row * width + columns
    h = tl.load(x_ptr + at, mask=inside, other=0.0) + tl.load(residual_ptr + at, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(h * h) / width + eps)
    tl.store(y_ptr + at, h * scale * tl.load(weight_ptr + columns, mask=inside, other=0.0), mask=inside)
    tl.store(h_ptr + at, h, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    y, h = torch.empty_like(x), torch.empty_like(x)
    rows, width = x.shape
    if rows and width:
        add_norm[(rows,)](x, residual, weight, y, h, width, eps, BLOCK=max(2, triton.next_power_of_2(width)))
    return y, h
