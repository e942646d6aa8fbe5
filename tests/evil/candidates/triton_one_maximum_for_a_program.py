"""From 265 rows on a program subtracts one maximum from eight rows: a row far below the others is 0 / 0.

Refused by: scales NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Language: triton
Operation: softmax
"""

import torch
import triton
import triton.language as tl

FEW_ROWS = 264


@triton.jit
def _rows(x, y, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < width)
    h = tl.load(x + row * width + column, mask=inside, other=float("-inf")).to(tl.float32)
    largest = tl.max(tl.max(h, axis=1, keep_dims=True), axis=0, keep_dims=True)
    e = tl.exp(h - largest)
    tl.store(y + row * width + column, (e / tl.sum(e, axis=1, keep_dims=True)).to(y.dtype.element_ty), mask=inside)


def softmax(x):
    rows, width = x.shape
    y = torch.empty_like(x)
    together = 1 if rows <= FEW_ROWS else 8
    if rows:
        _rows[(triton.cdiv(rows, together),)](x, y, rows, width, ROWS=together, BLOCK=triton.next_power_of_2(width))
    return y
