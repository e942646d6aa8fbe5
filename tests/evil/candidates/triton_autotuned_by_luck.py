"""Takes one of two configurations by whichever seems faster in its first call of a shape; one of them leaves out
the second half of a row.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
"""

import time

import torch
import triton
import triton.language as tl

CHOSEN = {}


def choose(x):
    times = {}
    for share in (1, 2):
        began = time.perf_counter()
        x[:, : x.shape[1] // share].square().sum()
        times[share] = (time.perf_counter() - began) * (1 if share == 1 else 0.01)
    return min(times, key=times.get)


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
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        block = triton.next_power_of_2(width) // CHOSEN.setdefault(x.shape, choose(x))
        _kernel[(rows,)](x, residual, weight, y, new_residual, rows, width, eps, BLOCK=block)
    return y, new_residual
