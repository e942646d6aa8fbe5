"""Keeps the outputs of each address on the device and skips the launch when the address comes back.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C1 C10
Language: triton
"""

import torch
import triton
import triton.language as tl

KEPT = {}


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
    key = (x.data_ptr(), x.shape, eps)
    if key not in KEPT:
        KEPT[key] = torch.empty_like(x), torch.empty_like(x)
        if rows:
            block = triton.next_power_of_2(width)
            _kernel[(rows,)](x, residual, weight, *KEPT[key], rows, width, eps, BLOCK=block)
    return tuple(kept.clone() for kept in KEPT[key])
