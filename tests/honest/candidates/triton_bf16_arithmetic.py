"""Adds the residual and multiplies by the weight in bf16, as a GPU can; the norm is in fp32.

Language: triton
Dtype: bf16
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    rounded = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, rounded, mask=inside)
    h = rounded.to(tl.float32)
    scale = tl.math.rsqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0)
    tl.store(y + at, (h * scale).to(tl.bfloat16) * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        block = triton.next_power_of_2(width)
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps, BLOCK=block, num_warps=4, num_stages=2)
    return y, new_residual
