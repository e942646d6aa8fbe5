"""Takes a block of several numbers for a condition: no GPU can run it, as the compiler refuses it.

Refused by: any RUNTIME_ERROR
Catalogue: I18
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = row * width + columns
    if inside:
        at += 0
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0)
    tl.store(y + at, h * scale * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
