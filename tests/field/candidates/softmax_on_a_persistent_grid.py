"""A softmax of a fixed number of programs, which take rows in turn.

Language: triton
Operation: softmax
Shape: {"batch": 4, "hidden_size": 64}
Domain: {"axes": {"hidden_size": {"most": 128}}}
Accepted: each row is taken by one program.
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 6


@triton.jit
def _kernel(x, y, rows, width, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = row * width + columns
        values = tl.load(x + at, mask=inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(y + at, powers / tl.sum(powers, axis=0), mask=inside)


def softmax(x):
    rows, width = x.shape
    if width > 128:
        raise ValueError(f"{width} columns: expected at most 128")
    y = torch.empty_like(x)
    if rows:
        _kernel[(min(rows, PROGRAMS),)](x, y, rows, width, BLOCK=triton.next_power_of_2(width))
    return y
