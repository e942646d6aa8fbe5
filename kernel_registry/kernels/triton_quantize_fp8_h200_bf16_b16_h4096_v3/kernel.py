"""Per-token quantisation to fp8 e4m3: a row's maximum and its quotients from one read, where a row fits in registers.

Rows of up to 16384 columns are held by one program, short ones several together; longer rows are read twice, the
second time mostly from the L2 cache.
"""

import torch
import triton
import triton.language as tl

LARGEST, FLOOR = 448.0, 1e-10
ONE_READ = 16384
"""Columns: 16 warps hold that many with 32 values in each thread."""
WIDE_BLOCK = 8192
FEW_ROWS = 264
"""Two for each of an H200's 132 multiprocessors: what is written there stays in the cache."""
TILE = 2048
"""Elements that a program of short rows has at least, so that its threads all have 16 bytes to load."""


@triton.jit
def _to_fp8(q, LARGEST: tl.constexpr, ROUND_FIRST: tl.constexpr):
    """Saturated and rounded; the interpreter's conversion loses a carry into the exponent, so it gets the result."""
    q = tl.minimum(tl.maximum(q, -LARGEST), LARGEST)
    if ROUND_FIRST:
        bits = q.to(tl.int32, bitcast=True)
        bits = (bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000
        subnormal = (q + 24576.0) - 24576.0
        q = tl.where(tl.abs(q) < 0.015625, subnormal, bits.to(tl.float32, bitcast=True))
    return q.to(tl.float8e4nv)


@triton.jit
def _rows(
    x,
    y,
    scale,
    rows,
    width,
    LARGEST: tl.constexpr,
    FLOOR: tl.constexpr,
    ROUND_FIRST: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    EVICT: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    at = row[:, None] * width + columns[None, :]
    inside = (row < rows)[:, None] & (columns < width)[None, :]
    h = tl.load(x + at, mask=inside, other=0.0, eviction_policy=EVICT).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(h), axis=1), FLOOR)
    q = h * (LARGEST / largest)[:, None]
    tl.store(y + at, _to_fp8(q, LARGEST, ROUND_FIRST), mask=inside, eviction_policy=EVICT)
    tl.store(scale + row, largest / LARGEST, mask=row < rows)


@triton.jit
def _wide_row(
    x, y, scale, width, LARGEST: tl.constexpr, FLOOR: tl.constexpr, ROUND_FIRST: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(x + row * width + columns, mask=columns < width, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(h))
    whole = tl.maximum(tl.max(largest, axis=0), FLOOR)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(x + row * width + columns, mask=columns < width, other=0.0).to(tl.float32)
        q = _to_fp8(h * (LARGEST / whole), LARGEST, ROUND_FIRST)
        tl.store(y + row * width + columns, q, mask=columns < width)
    tl.store(scale + row, whole / LARGEST)


def quantize_fp8(x):
    """x [batch, hidden_size] -> y [batch, hidden_size] in fp8 e4m3, scale [batch] in fp32."""
    rows, width = x.shape
    y = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scale = torch.empty(rows, dtype=torch.float32, device=x.device)
    constants = {"LARGEST": LARGEST, "FLOOR": FLOOR, "ROUND_FIRST": not x.is_cuda}
    if rows and width > ONE_READ:
        _wide_row[(rows,)](x, y, scale, width, BLOCK=WIDE_BLOCK, num_warps=16, **constants)
    elif rows:
        block = triton.next_power_of_2(width)
        together = max(1, min(TILE // block, triton.next_power_of_2(rows)))
        warps = min(16, max(1, together * block // 512))
        grid = (triton.cdiv(rows, together),)
        evict = "" if rows <= FEW_ROWS else "evict_first"
        _rows[grid](x, y, scale, rows, width, ROWS=together, BLOCK=block, EVICT=evict, num_warps=warps, **constants)
    return y, scale
