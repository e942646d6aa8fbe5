"""Attention of one query for each sequence: pieces of the cache are programs of their own, put together afterwards.

The heads of a group share keys and values, so they are the rows of one tile. A piece keeps its largest score, its sum
of powers and its weighted values in fp32.
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 528
"""Programs that keep an H200's 132 multiprocessors busy, four on each."""
LEAST_PIECE = 128
MOST_PIECES = 128


@triton.jit
def _piece(
    q,
    k,
    v,
    sums,
    largest,
    values,
    length,
    heads,
    width,
    scale,
    per_piece,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    pair, piece, pieces = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token, head = pair // heads, pair % heads
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    own = (row < GROUP)[:, None] & (column < width)[None, :]
    query = tl.load(q + (pair * GROUP + row[:, None]) * width + column[None, :], mask=own, other=0.0)
    best = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    begin = piece * per_piece
    for start in range(begin, tl.minimum(begin + per_piece, length), BLOCK):
        position = start + tl.arange(0, BLOCK)
        at = ((token * length + position[:, None]) * heads + head) * width + column[None, :]
        inside = (position < length)[:, None] & (column < width)[None, :]
        keys = tl.load(k + at, mask=inside, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where((position < length)[None, :], scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, axis=1))
        # a fused multiply and add leaves more than 0 where a score and the largest one were rounded apart
        powers = tl.exp(tl.minimum(scores - higher[:, None], 0.0, propagate_nan=tl.PropagateNan.ALL))
        fading = tl.exp(best - higher)
        total = total * fading + tl.sum(powers, axis=1)
        part = tl.load(v + at, mask=inside, other=0.0)
        mixed = mixed * fading[:, None] + tl.dot(powers.to(part.dtype), part, input_precision="ieee")
        best = higher
    to = (pair * pieces + piece) * GROUP + row
    tl.store(sums + to, total, mask=row < GROUP)
    tl.store(largest + to, best, mask=row < GROUP)
    tl.store(values + to[:, None] * width + column[None, :], mixed, mask=own)


@triton.jit
def _together(
    sums, largest, values, y, pieces, width, GROUP: tl.constexpr, PIECES: tl.constexpr, WIDTH: tl.constexpr
):
    pair, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot, column = tl.arange(0, PIECES), tl.arange(0, WIDTH)
    at = (pair * pieces + slot) * GROUP + row
    best = tl.load(largest + at, mask=slot < pieces, other=float("-inf"))
    share = tl.exp(best - tl.max(best, axis=0))
    total = tl.sum(share * tl.load(sums + at, mask=slot < pieces, other=0.0), axis=0)
    inside = (slot < pieces)[:, None] & (column < width)[None, :]
    mixed = tl.load(values + at[:, None] * width + column[None, :], mask=inside, other=0.0)
    answer = tl.sum(mixed * share[:, None], axis=0) / total
    tl.store(y + (pair * GROUP + row) * width + column, answer.to(y.dtype.element_ty), mask=column < width)


def attention_decode(q, k, v):
    """q [tokens, kv_heads, group, d], k, v [tokens, kv_len, kv_heads, d] -> y like q."""
    tokens, heads, group, width = q.shape
    length = k.shape[1]
    if q.numel() == 0 or length == 0:
        return torch.zeros_like(q)
    y = torch.empty_like(q)
    pairs = tokens * heads
    wanted = max(1, min(MOST_PIECES, triton.cdiv(length, LEAST_PIECE), triton.cdiv(PROGRAMS, pairs)))
    per_piece = triton.cdiv(triton.cdiv(length, wanted), LEAST_PIECE) * LEAST_PIECE
    pieces = triton.cdiv(length, per_piece)
    sums = torch.empty(pairs, pieces, group, dtype=torch.float32, device=q.device)
    largest = torch.empty_like(sums)
    values = torch.empty(pairs, pieces, group, width, dtype=torch.float32, device=q.device)
    wide = max(16, triton.next_power_of_2(width))
    _piece[(pairs, pieces)](
        q,
        k,
        v,
        sums,
        largest,
        values,
        length,
        heads,
        width,
        width**-0.5,
        per_piece,
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        WIDTH=wide,
        BLOCK=64 if wide <= 128 else 32,
        num_warps=4,
        num_stages=3,
    )
    _together[(pairs, group)](
        sums, largest, values, y, pieces, width, GROUP=group, PIECES=triton.next_power_of_2(pieces), WIDTH=wide
    )
    return y
