"""The same with a block that is one element too short behind a power of two.

Language: triton
Operation: softmax
Shape: {"batch": 4, "hidden_size": 64}
Domain: {"axes": {"hidden_size": {"most": 128}}}
Twin of: softmax_by_heuristics
Refused by: any INCORRECT_NUMERICAL or NON_FINITE
"""

import torch
import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(max(1, given["width"] - 1))})
@triton.jit
def _kernel(x, y, width, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    row = tl.load(x + at, mask=inside, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + at, powers / tl.sum(powers, axis=0), mask=inside)


def softmax(x):
    rows, width = x.shape
    if width > 128:
        raise ValueError(f"{width} columns: expected at most 128")
    y = torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, y, width)
    return y
