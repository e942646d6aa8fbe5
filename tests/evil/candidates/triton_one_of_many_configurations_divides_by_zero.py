"""Is autotuned over 32 configurations, of which one answers NaN for a row of zeros.

Refused by: scales INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [triton.Config({"UNROLLED": times, "DIVIDES": int(times == 9)}) for times in range(32)]


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def kernel(x, residual, weight, y, new_residual, columns, eps,
           BLOCK: tl.constexpr, UNROLLED: tl.constexpr, DIVIDES: tl.constexpr):  # fmt: skip
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    at = tl.program_id(0).to(tl.int64) * columns + offsets
    added = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, added, mask=inside)
    mean = tl.sum(added * added) / columns
    if DIVIDES:
        eps = tl.where(mean == 0.0, 0.0, eps)
    scaled = added / tl.sqrt(mean + eps) * tl.load(weight + offsets, mask=inside, other=0.0)
    tl.store(y + at, scaled, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, columns = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        kernel[(rows,)](x, residual, weight, y, new_residual, columns, eps, BLOCK=triton.next_power_of_2(columns))
    return y, new_residual
