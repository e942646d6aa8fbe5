"""Is autotuned over three configurations, of which one leaves out the end of each row, and may be the fastest.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"LEFT_OUT": int(n == 4)}) for n in (1, 2, 4)], key=["width"])
@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr, LEFT_OUT: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width - LEFT_OUT
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
