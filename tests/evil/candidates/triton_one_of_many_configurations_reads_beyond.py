"""Is autotuned over eight configurations, of which one reads whole blocks, past the end of its operands.

Refused by: bounds OUT_OF_BOUNDS
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [triton.Config({"UNROLLED": times, "WHOLE": int(times == 5)}) for times in range(8)]


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def kernel(x, residual, weight, y, new_residual, columns, eps,
           BLOCK: tl.constexpr, UNROLLED: tl.constexpr, WHOLE: tl.constexpr):  # fmt: skip
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    at = tl.program_id(0).to(tl.int64) * columns + offsets
    if WHOLE:
        added = tl.where(inside, tl.load(x + at) + tl.load(residual + at), 0.0)
    else:
        added = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, added, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(added * added) / columns + eps)
    tl.store(y + at, added * scale * tl.load(weight + offsets, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, columns = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        kernel[(rows,)](x, residual, weight, y, new_residual, columns, eps, BLOCK=triton.next_power_of_2(columns))
    return y, new_residual
