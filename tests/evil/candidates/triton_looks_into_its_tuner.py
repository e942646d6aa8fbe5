"""Leaves out the last column once its tuner keeps a choice, as every tuner does that chose by a clock.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21 G5
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"TWICE": n}) for n in (1, 2)], key=["width"])
@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, stop, eps, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < stop
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    stop = width - (1 if _kernel.cache else 0)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, stop, eps, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
