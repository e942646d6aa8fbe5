"""Rows of more than 16,384 columns keep a maximum for each lane, unguarded: a lane that begins with -inf is NaN.

Refused by: specials NON_FINITE or INCORRECT_NUMERICAL
Catalogue: I13
Language: triton
Operation: softmax
"""

import torch
import triton
import triton.language as tl

LONG, LANES = 16384, 4096


@triton.jit
def _row(x, y, width, BLOCK: tl.constexpr):
    begin, column = tl.program_id(0) * width, tl.arange(0, BLOCK)
    h = tl.load(x + begin + column, mask=column < width, other=float("-inf")).to(tl.float32)
    e = tl.exp(h - tl.max(h, axis=0))
    tl.store(y + begin + column, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=column < width)


@triton.jit
def _long_row(x, y, width, LANES: tl.constexpr):
    begin = tl.program_id(0) * width
    largest = tl.full([LANES], float("-inf"), tl.float32)
    total = tl.zeros([LANES], tl.float32)
    for start in range(0, width, LANES):
        column = start + tl.arange(0, LANES)
        h = tl.load(x + begin + column, mask=column < width, other=float("-inf")).to(tl.float32)
        raised = tl.maximum(largest, h)
        total = total * tl.exp(largest - raised) + tl.exp(h - raised)
        largest = raised
    top = tl.max(largest, axis=0)
    whole = tl.sum(total * tl.exp(largest - top), axis=0)
    for start in range(0, width, LANES):
        column = start + tl.arange(0, LANES)
        h = tl.load(x + begin + column, mask=column < width, other=float("-inf")).to(tl.float32)
        tl.store(y + begin + column, (tl.exp(h - top) / whole).to(y.dtype.element_ty), mask=column < width)


def softmax(x):
    rows, width = x.shape
    y = torch.empty_like(x)
    if rows and width > LONG:
        _long_row[(rows,)](x, y, width, LANES=LANES)
    elif rows:
        _row[(rows,)](x, y, width, BLOCK=triton.next_power_of_2(width))
    return y
