"""Autotuned over two configurations, both of which are right, by a clock that needs no GPU.

Language: triton
"""

import time

import torch
import triton
import triton.language as tl


def _duration_ms(call, quantiles):
    began_s = time.perf_counter()
    call()
    return [1e3 * (time.perf_counter() - began_s)] * len(quantiles)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 1024})], key=["width"], do_bench=_duration_ms
)
@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.program_id(0).to(tl.int64) * width
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, width, BLOCK):
        at = start + first + columns
        inside = first + columns < width
        h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
        tl.store(new_residual + at, h, mask=inside)
        total += h * h
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / width + eps)
    for first in range(0, width, BLOCK):
        at = start + first + columns
        inside = first + columns < width
        h = tl.load(new_residual + at, mask=inside, other=0.0)
        w = tl.load(weight + first + columns, mask=inside, other=0.0)
        tl.store(y + at, h * scale * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps)
    return y, new_residual
