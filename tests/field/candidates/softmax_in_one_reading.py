"""A softmax that keeps a running maximum and rescales the sum, block by block.

Language: triton
Operation: softmax
Shape: {"batch": 4, "hidden_size": 64}
Domain: {"axes": {"hidden_size": {"most": 128}}}
Accepted: the sum always belongs to the maximum so far.
"""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def _kernel(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    top, total = -float("inf"), 0.0
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + columns, mask=columns < width, other=-float("inf"))
        higher = tl.maximum(top, tl.max(values, axis=0))
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(values - shift), axis=0)
        top = higher
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + columns, mask=columns < width, other=-float("inf"))
        tl.store(y + row + columns, tl.exp(values - top) / total, mask=columns < width)


def softmax(x):
    rows, width = x.shape
    if width > 128:
        raise ValueError(f"{width} columns: expected at most 128")
    y = torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, y, width, BLOCK=BLOCK)
    return y
