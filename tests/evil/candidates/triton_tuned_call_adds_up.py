"""Adds to what it reads from its own output, so the call in which a tuner runs it many times is wrong.

Refused by: configurations INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"PARTS": n}) for n in (1, 2, 4)], key=["width"])
@triton.jit
def _kernel(
    x,
    residual,
    weight,
    y,
    new_residual,
    sums,
    width,
    eps,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    tl.atomic_add(sums + tl.program_id(0), tl.sum(h * h, axis=0))
    scale = 1.0 / tl.sqrt(tl.load(sums + tl.program_id(0)) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        sums = torch.zeros(rows, device=x.device)
        _kernel[(rows,)](x, residual, weight, y, new_residual, sums, width, eps, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
