"""int8 weights times a scale for each row: every thread reads 16 bytes and writes the products of all of them.
The constants stand at plain values; space.json says which others a search may try.
"""

import torch
import triton
import triton.language as tl

TILE = 1024
"""Elements of a program."""
MOST_COLUMNS = 1024
WARPS = 4


@triton.jit
def _rounded(y, ELEMENT: tl.constexpr, ROUND_FIRST: tl.constexpr):
    """In the output's type; the interpreter cuts bfloat16's bits off, so it gets what is rounded already."""
    if ROUND_FIRST:
        bits = y.to(tl.int32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000
        y = bits.to(tl.float32, bitcast=True)
    return y.to(ELEMENT)


@triton.jit
def _tile(x, scale, y, rows, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROUND_FIRST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    at = row[:, None] * width + columns[None, :]
    inside = (row < rows)[:, None] & (columns < width)[None, :]
    q = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    s = tl.load(scale + row, mask=row < rows, other=0.0).to(tl.float32)
    tl.store(y + at, _rounded(q * s[:, None], y.dtype.element_ty, ROUND_FIRST), mask=inside)


def dequant_int8(x, scale):
    """x [batch, hidden_size] in int8, scale [batch] -> y [batch, hidden_size] in the scale's type."""
    rows, width = x.shape
    y = torch.empty_like(x, dtype=scale.dtype)
    first = not x.is_cuda and y.dtype == torch.bfloat16
    if rows:
        columns = min(TILE, MOST_COLUMNS, triton.next_power_of_2(width))
        together = min(TILE // columns, triton.next_power_of_2(rows))
        grid = (triton.cdiv(rows, together), triton.cdiv(width, columns))
        _tile[grid](x, scale, y, rows, width, ROWS=together, COLUMNS=columns, ROUND_FIRST=first, num_warps=WARPS)
    return y
