"""Gated RMSNorm and its int8 quantisation in one pass: a row stays in registers between the norm and the quotients.

Rows of up to 8192 columns are held by one program, short ones several together; longer rows are read three times, the
second and third time mostly from the L2 cache.
"""

import torch
import triton
import triton.language as tl

ONE_READ = 8192
WIDE_BLOCK = 4096
TILE = 2048


@triton.jit
def _gated(h, g, w):
    # 1 / (1 + e^-g) as the square of a root's reciprocal: one instruction, where a division takes several
    root = tl.rsqrt(1.0 + tl.exp(-g))
    return h * (g * (root * root)) * w


@triton.jit
def _to_int8(h, over_largest):
    # 1.5 times 2^23: a small number plus this is rounded to a whole one, ties to even, which its low bits are
    return (h * over_largest + 12582912.0).to(tl.int32, bitcast=True).to(tl.int8)


@triton.jit
def _rows(x, gate, weight, y, scale, rows, width, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    at = row[:, None] * width + columns[None, :]
    inside = (row < rows)[:, None] & (columns < width)[None, :]
    h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + columns, mask=columns < width, other=0.0).to(tl.float32)
    root = 1.0 / tl.sqrt(tl.sum(h * h, axis=1) / width + eps)
    h = _gated(h * root[:, None], g, w[None, :])
    largest = tl.maximum(tl.max(tl.abs(h), axis=1), 1e-10)
    tl.store(y + at, _to_int8(h, (127.0 / largest)[:, None]), mask=inside)
    tl.store(scale + row, largest / 127.0, mask=row < rows)


@triton.jit
def _wide_row(x, gate, weight, y, scale, width, eps, BLOCK: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * width
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(x + start_of_row + columns, mask=columns < width, other=0.0).to(tl.float32)
        squares += h * h
    root = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / width + eps)
    magnitudes = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(x + start_of_row + columns, mask=columns < width, other=0.0).to(tl.float32)
        g = tl.load(gate + start_of_row + columns, mask=columns < width, other=0.0).to(tl.float32)
        w = tl.load(weight + columns, mask=columns < width, other=0.0).to(tl.float32)
        magnitudes = tl.maximum(magnitudes, tl.abs(_gated(h * root, g, w)))
    largest = tl.maximum(tl.max(magnitudes, axis=0), 1e-10)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(x + start_of_row + columns, mask=columns < width, other=0.0).to(tl.float32)
        g = tl.load(gate + start_of_row + columns, mask=columns < width, other=0.0).to(tl.float32)
        w = tl.load(weight + columns, mask=columns < width, other=0.0).to(tl.float32)
        q = _to_int8(_gated(h * root, g, w), 127.0 / largest)
        tl.store(y + start_of_row + columns, q, mask=columns < width)
    tl.store(scale + tl.program_id(0), largest / 127.0)


def gated_rmsnorm_quant(x, gate, weight, eps):
    """x, gate [batch, hidden_size], weight [hidden_size] -> y [batch, hidden_size] in int8, scale [batch] in fp32."""
    rows, width = x.shape
    y = torch.empty_like(x, dtype=torch.int8)
    scale = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows and width > ONE_READ:
        _wide_row[(rows,)](x, gate, weight, y, scale, width, eps, BLOCK=WIDE_BLOCK, num_warps=8)
    elif rows:
        block = triton.next_power_of_2(width)
        together = max(1, min(TILE // block, triton.next_power_of_2(rows) // 256))
        warps = min(16, max(1, together * block // 512))
        _rows[(triton.cdiv(rows, together),)](
            x, gate, weight, y, scale, rows, width, eps, ROWS=together, BLOCK=block, num_warps=warps
        )
    return y, scale
