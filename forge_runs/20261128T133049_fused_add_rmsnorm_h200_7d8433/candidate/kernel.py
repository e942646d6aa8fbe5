"""Residual add and RMSNorm for the H200: the sum stays in registers between its store and the normalised row.

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
    x, residual, weight, y, new_residual, rows, width, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < width)
    at = row * width + column
    h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    tl.store(new_residual + at, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(h * h, axis=1, keep_dims=True) / width + eps)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _row_in_blocks(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * width
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < width
        h = tl.load(x + begin + column, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual + begin + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(new_residual + begin + column, h.to(new_residual.dtype.element_ty), mask=inside)
        squares += h * h
    scale = tl.rsqrt(tl.sum(squares, axis=0) / width + eps)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < width
        h = tl.load(x + begin + column, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual + begin + column, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + begin + column, (h * scale * w).to(y.dtype.element_ty), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows == 0:
        return y, new_residual
    operands = (x, residual, weight, y, new_residual)
    if width > WIDEST_IN_REGISTERS:
        _row_in_blocks[(rows,)](*operands, width, eps, BLOCK=BLOCK_OF_WIDE_ROWS, num_warps=16)
        return y, new_residual
    block = max(NARROWEST, triton.next_power_of_2(width))
    together = 1 if rows <= FEW_ROWS else max(1, ELEMENTS_PER_PROGRAM // block)
    per_thread = 8 if rows <= FEW_ROWS else 16
    warps = min(16, max(1, together * block // (32 * per_thread)))
    programs = triton.cdiv(rows, together)
    _rows_in_registers[(programs,)](*operands, rows, width, eps, ROWS=together, BLOCK=block, num_warps=warps)
    return y, new_residual
