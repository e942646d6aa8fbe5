"""int4 weights in groups of 128: a program takes whole groups, so that each has one scale and one zero point to read.

A thread reads 16 bytes, which are 32 weights, and writes them next to each other: low half, high half, and so on.

The constants stand at plain values; space.json says which others a search may try.
"""

import torch
import triton
import triton.language as tl

WARPS = 4
PAIRS = 64
"""Bytes of a group."""
TILE = 512
"""Bytes of a program."""


@triton.jit
def _rounded(y, ELEMENT: tl.constexpr, ROUND_FIRST: tl.constexpr):
    """In the output's type; the interpreter cuts bfloat16's bits off, so it gets what is rounded already."""
    if ROUND_FIRST:
        bits = y.to(tl.int32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000
        y = bits.to(tl.float32, bitcast=True)
    return y.to(ELEMENT)


@triton.jit
def _groups(
    packed,
    scale,
    zero,
    y,
    groups,
    groups_per_row,
    width,
    GROUPS: tl.constexpr,
    PAIRS: tl.constexpr,
    ROUND_FIRST: tl.constexpr,
):
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    row = group // groups_per_row
    first = (group - row * groups_per_row) * PAIRS
    pair = tl.arange(0, PAIRS)
    inside = (group < groups)[:, None] & ((first[:, None] + pair[None, :]) < width)
    q = tl.load(packed + row[:, None] * width + first[:, None] + pair[None, :], mask=inside, other=0)
    s = tl.load(scale + group, mask=group < groups, other=0.0).to(tl.float32)[:, None]
    z = tl.load(zero + group, mask=group < groups, other=0.0).to(tl.float32)[:, None]
    low = ((q & 15).to(tl.float32) - z) * s
    high = ((q >> 4).to(tl.float32) - z) * s
    column = tl.arange(0, 2 * PAIRS)
    at = 2 * (row * width + first)[:, None] + column[None, :]
    wanted = (group < groups)[:, None] & ((2 * first[:, None] + column[None, :]) < 2 * width)
    tl.store(y + at, _rounded(tl.interleave(low, high), y.dtype.element_ty, ROUND_FIRST), mask=wanted)


def dequant_int4(packed, scale, zero):
    """packed [batch, pairs] in uint8, scale and zero [batch, pairs / 64] -> y [batch, 2 pairs] in the scale's type."""
    rows, width = packed.shape
    y = torch.empty(rows, 2 * width, dtype=scale.dtype, device=packed.device)
    groups = scale.numel()
    first = not packed.is_cuda and y.dtype == torch.bfloat16
    if groups:
        together = TILE // PAIRS
        _groups[(triton.cdiv(groups, together),)](
            packed,
            scale,
            zero,
            y,
            groups,
            scale.shape[1],
            width,
            GROUPS=together,
            PAIRS=PAIRS,
            ROUND_FIRST=first,
            num_warps=WARPS,
        )
    return y
