"""Softmax for the H200: a row stays in registers between its maximum, its sum and the result.

Short rows share a program, so that a program has work for all of its warps. Rows too wide for registers are read twice,
the second time from the cache: each lane keeps a maximum and a sum of its own, and rescales the sum as the maximum
rises. Loads become 16 bytes wide where width and addresses are multiples of 16, which Triton finds out by itself when
it specialises a launch; other sizes and addresses take narrower ones.
"""

import torch
import triton
import triton.language as tl

WIDEST_IN_REGISTERS = 16384
BLOCK_OF_WIDE_ROWS = 4096
NARROWEST = 64
ELEMENTS_PER_PROGRAM = 2048
FEW_ROWS = 264
"""Two for each of an H200's 132 multiprocessors: up to here latency counts, and beyond it bandwidth."""


@triton.jit
def _rows_in_registers(x, y, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVICT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < width)
    at = row * width + column
    h = tl.load(x + at, mask=inside, other=-float("inf"), eviction_policy=EVICT).to(tl.float32)
    e = tl.exp(h - tl.max(h, axis=1, keep_dims=True))
    scale = 1.0 / tl.sum(e, axis=1, keep_dims=True)
    tl.store(y + at, (e * scale).to(y.dtype.element_ty), mask=inside, eviction_policy=EVICT)


@triton.jit
def _row_in_blocks(x, y, width, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * width
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        h = tl.load(x + begin + column, mask=column < width, other=-float("inf")).to(tl.float32)
        raised = tl.maximum(largest, h)
        # a lane that has met nothing but minus infinity has summed nothing: any finite shift keeps its zero
        shift = tl.where(raised == -float("inf"), 0.0, raised)
        total = total * tl.exp(largest - shift) + tl.exp(h - shift)
        largest = raised
    top = tl.max(largest, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(largest - top), axis=0)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        h = tl.load(x + begin + column, mask=column < width, other=-float("inf")).to(tl.float32)
        tl.store(y + begin + column, (tl.exp(h - top) * scale).to(y.dtype.element_ty), mask=column < width)


def softmax(x):
    """x [batch, hidden_size] -> y [batch, hidden_size], row by row."""
    rows, width = x.shape
    y = torch.empty_like(x)
    if rows == 0:
        return y
    if width > WIDEST_IN_REGISTERS:
        _row_in_blocks[(rows,)](x, y, width, BLOCK=BLOCK_OF_WIDE_ROWS, num_warps=16)
        return y
    block = max(NARROWEST, triton.next_power_of_2(width))
    together = 1 if rows <= FEW_ROWS else max(1, ELEMENTS_PER_PROGRAM // block)
    per_thread = 8 if rows <= FEW_ROWS else 16
    warps = min(16, max(1, together * block // (32 * per_thread)))
    programs = triton.cdiv(rows, together)
    evict = "" if rows <= FEW_ROWS else "evict_first"
    _rows_in_registers[(programs,)](x, y, rows, width, ROWS=together, BLOCK=block, EVICT=evict, num_warps=warps)
    return y
