"""Is autotuned over four configurations and computes one block of a row; in one of them the block is shorter than a
wide row, whose rest it leaves out. That one is the fastest there.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [triton.Config({"BLOCK": block, "UNROLLED": times}) for block, times in
                  ((65536, 1), (65536, 2), (2048, 1), (65536, 4))]  # fmt: skip


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def kernel(x, residual, weight, y, new_residual, columns, eps, BLOCK: tl.constexpr, UNROLLED: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    added = tl.load(x + row * columns + offsets, mask=inside, other=0.0)
    added += tl.load(residual + row * columns + offsets, mask=inside, other=0.0)
    root = tl.sqrt(tl.sum(added * added) / columns + eps)
    tl.store(new_residual + row * columns + offsets, added, mask=inside)
    tl.store(
        y + row * columns + offsets, added / root * tl.load(weight + offsets, mask=inside, other=0.0), mask=inside
    )


def fused_add_rmsnorm(x, residual, weight, eps):
    x, residual = x.contiguous(), residual.contiguous()
    y, new_residual = torch.zeros_like(x), torch.zeros_like(x)
    if x.numel():
        kernel[(x.shape[0],)](x, residual, weight.contiguous(), y, new_residual, x.shape[1], eps)
    return y, new_residual
