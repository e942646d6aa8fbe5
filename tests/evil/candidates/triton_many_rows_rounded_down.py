"""From 265 rows on a program takes eight of them, and the number of programs is rounded down.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I2
Language: triton
Operation: layernorm
"""

import torch
import triton
import triton.language as tl

FEW_ROWS = 264


@triton.jit
def _rows(x, weight, bias, y, rows, width, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < width)
    h = tl.load(x + row * width + column, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < width, other=0.0).to(tl.float32)
    centred = tl.where(inside, h - tl.sum(h, axis=1, keep_dims=True) / width, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1, keep_dims=True) / width + eps)
    tl.store(y + row * width + column, (centred * scale * w + b).to(y.dtype.element_ty), mask=inside)


def layernorm(x, weight, bias, eps):
    rows, width = x.shape
    y = torch.empty_like(x)
    together = 1 if rows <= FEW_ROWS else 8
    if rows:
        block = triton.next_power_of_2(width)
        _rows[(rows // together,)](x, weight, bias, y, rows, width, eps, ROWS=together, BLOCK=block)
    return y
