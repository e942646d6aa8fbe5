"""Widens the counter of its loop over rows, and reduces pairs of a maximum and a sum by a function of its own.

Language: triton
Operation: softmax
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _together(one, its_sum, other, other_sum):
    largest = tl.maximum(one, other)
    level = tl.where(largest == float("-inf"), 0.0, largest)
    return largest, its_sum * tl.exp(one - level) + other_sum * tl.exp(other - level)


@triton.jit
def _row(x, row, width, columns):
    return tl.load(x + row.to(tl.int64) * width + columns, mask=columns < width, other=float("-inf"))


@triton.jit
def _rows(x, y, rows, width, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        h = _row(x, row, width, columns)
        largest, total = tl.reduce((h, tl.where(columns < width, 1.0, 0.0)), 0, _together)
        tl.store(y + row.to(tl.int64) * width + columns, tl.exp(h - largest) / total, mask=columns < width)


def softmax(x):
    y = torch.empty_like(x)
    rows, width = x.shape
    if rows and width:
        programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 4
        _rows[(min(rows, programs),)](x, y, rows, width, BLOCK=triton.next_power_of_2(width))
    return y
