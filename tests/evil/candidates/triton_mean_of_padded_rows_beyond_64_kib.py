"""Divides the mean by the padded width in rows of more than 64 KiB.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
Dtype: fp16
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _row(x, residual, weight, y, new_residual, x_stride, r_stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    h = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + row * r_stride + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + row * width + columns, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * width + columns, h * scale * w, mask=inside)


@triton.jit
def _long(x, residual, weight, y, new_residual, x_stride, r_stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < width
        h = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual + row * r_stride + columns, mask=inside, other=0.0).to(tl.float32)
        h = tl.where(inside, h, 0.0)
        tl.store(new_residual + row * width + columns, h, mask=inside)
        total += h * h
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / (tl.cdiv(width, BLOCK) * BLOCK) + eps)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < width
        h = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual + row * r_stride + columns, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * width + columns, h * scale * w, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2))
    if rows:
        given = (x, residual, weight, y, new_residual, x.stride(0), residual.stride(0), width, eps)
        if width > 65536 // x.element_size():
            _long[(rows,)](*given, BLOCK=4096)
        else:
            _row[(rows,)](*given, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
