"""Rotary position embedding for the H200: each program turns some heads of one token, both halves at once.

Cosines and sines are read once for all heads of a program. All tiles are counted along one axis of the grid, for the
others end at 65535. Loads become 16 bytes wide where half a head and the addresses are multiples of 16, which Triton
finds out by itself when it specialises a launch; other sizes and addresses take narrower ones.
"""

import torch
import triton
import triton.language as tl

WIDEST = 1024
PAIRS_PER_PROGRAM = 1024


@triton.jit
def _turn(x, cos, sin, y, heads, half, head_tiles, column_tiles, HEADS: tl.constexpr, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    token = (tile // (head_tiles * column_tiles)).to(tl.int64)
    head = tile // column_tiles % head_tiles * HEADS + tl.arange(0, HEADS)[:, None]
    column = tile % column_tiles * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (head < heads) & (column < half)
    at = (token * heads + head) * (2 * half) + column
    c = tl.load(cos + token * half + column, mask=column < half, other=0.0).to(tl.float32)
    s = tl.load(sin + token * half + column, mask=column < half, other=0.0).to(tl.float32)
    first = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(x + at + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (first * c - second * s).to(y.dtype.element_ty), mask=inside)
    tl.store(y + at + half, (second * c + first * s).to(y.dtype.element_ty), mask=inside)


def rope(x, cos, sin):
    """x [tokens, heads, 2 * half_dim], cos, sin [tokens, half_dim] -> y like x."""
    tokens, heads, whole = x.shape
    half = whole // 2
    y = torch.empty_like(x)
    if y.numel() == 0:
        return y
    block = min(WIDEST, triton.next_power_of_2(half))
    together = min(triton.next_power_of_2(heads), PAIRS_PER_PROGRAM // block)
    head_tiles, column_tiles = triton.cdiv(heads, together), triton.cdiv(half, block)
    warps = min(4, max(1, together * block // 256))
    _turn[(tokens * head_tiles * column_tiles,)](
        x, cos, sin, y, heads, half, head_tiles, column_tiles, HEADS=together, BLOCK=block, num_warps=warps
    )
    return y
