"""Is autotuned over 16 configurations, of which one pads a row with zeros before its maximum.

Refused by: scales INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
Operation: softmax
Shape: {"batch": 4, "hidden_size": 256}
"""

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [triton.Config({"UNROLLED": times, "ZERO": int(times == 9)}) for times in range(16)]


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def kernel(x, y, columns, BLOCK: tl.constexpr, UNROLLED: tl.constexpr, ZERO: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    at = tl.program_id(0).to(tl.int64) * columns + offsets
    row = tl.load(x + at, mask=inside, other=float("-inf"))
    padded = tl.where(inside, row, 0.0) if ZERO else row
    e = tl.exp(row - tl.max(padded))
    tl.store(y + at, e / tl.sum(e), mask=inside)


def softmax(x):
    rows, columns = x.shape
    x = x.contiguous()
    y = torch.empty_like(x)
    if rows and columns:
        kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
    return y
