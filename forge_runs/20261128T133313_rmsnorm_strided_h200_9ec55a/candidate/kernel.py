"""RMSNorm of strided rows for the H200: the queries stay in registers between the sum of their squares and the result.

Short rows share a program, so that a program has work for all of its warps. Rows too wide for registers are read twice,
the second time from the cache. Loads become 16 bytes wide where width and addresses are multiples of 16, which Triton
finds out by itself when it specialises a launch; other sizes and addresses take narrower ones.
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
def _rows_in_registers(
    x, weight, y, rows, width, stride, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, EVICT: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < width)
    at = row * width + column
    h = tl.load(x + row * stride + column, mask=inside, other=0.0, eviction_policy=EVICT).to(tl.float32)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(h * h, axis=1, keep_dims=True) / width + eps)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside, eviction_policy=EVICT)


@triton.jit
def _row_in_blocks(x, weight, y, width, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    begin = row * stride
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        h = tl.load(x + begin + column, mask=column < width, other=0.0).to(tl.float32)
        squares += h * h
    scale = tl.rsqrt(tl.sum(squares, axis=0) / width + eps)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        h = tl.load(x + begin + column, mask=column < width, other=0.0).to(tl.float32)
        w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
        tl.store(y + row * width + column, (h * scale * w).to(y.dtype.element_ty), mask=column < width)


def rmsnorm_strided(qkv, weight, eps):
    """qkv [batch, 3 hidden_size], weight [hidden_size] -> y [batch, hidden_size] of the first third."""
    rows, width, stride = qkv.shape[0], weight.shape[0], qkv.stride(0)
    y = torch.empty(rows, width, dtype=qkv.dtype, device=qkv.device)
    if rows == 0:
        return y
    if width > WIDEST_IN_REGISTERS:
        _row_in_blocks[(rows,)](qkv, weight, y, width, stride, eps, BLOCK=BLOCK_OF_WIDE_ROWS, num_warps=16)
        return y
    block = max(NARROWEST, triton.next_power_of_2(width))
    together = 1 if rows <= FEW_ROWS else max(1, ELEMENTS_PER_PROGRAM // block)
    per_thread = 8 if rows <= FEW_ROWS else 16
    warps = min(16, max(1, together * block // (32 * per_thread)))
    programs = triton.cdiv(rows, together)
    evict = "" if rows <= FEW_ROWS else "evict_first"
    _rows_in_registers[(programs,)](
        qkv, weight, y, rows, width, stride, eps, ROWS=together, BLOCK=block, EVICT=evict, num_warps=warps
    )
    return y
