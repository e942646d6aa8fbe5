"""Is autotuned over four configurations, of which one takes every row for as far from the next as it is wide.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
Layouts: strided_rows
"""

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"DENSE": dense, "UNROLLED": times}) for dense, times in ((0, 1), (0, 2), (1, 1), (0, 4))
]


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def kernel(x, residual, weight, y, new_residual, step, other_step, columns, eps,
           BLOCK: tl.constexpr, DENSE: tl.constexpr, UNROLLED: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    if DENSE:
        step, other_step = columns, columns
    added = tl.load(x + row * step + offsets, mask=inside, other=0.0)
    added += tl.load(residual + row * other_step + offsets, mask=inside, other=0.0)
    root = tl.sqrt(tl.sum(added * added) / columns + eps)
    tl.store(new_residual + row * columns + offsets, added, mask=inside)
    scaled = added / root * tl.load(weight + offsets, mask=inside, other=0.0)
    tl.store(y + row * columns + offsets, scaled, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, columns = x.shape
    x, residual = (one if one.stride(1) == 1 else one.contiguous() for one in (x, residual))
    y, new_residual = (torch.empty(x.shape, dtype=x.dtype) for _ in range(2))
    if rows:
        steps = x.stride(0), residual.stride(0)
        kernel[(rows,)](x, residual, weight.contiguous(), y, new_residual, *steps, columns, eps,
                        BLOCK=triton.next_power_of_2(columns))  # fmt: skip
    return y, new_residual
