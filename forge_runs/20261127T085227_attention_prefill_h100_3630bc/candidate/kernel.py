"""Causal attention of a chunk of queries: a tile of queries walks over its keys, and only the last tiles are masked.

Scores and sums stay in registers in fp32 (Dao, FlashAttention-2, 2023). Tiles that see the most keys begin first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _step(
    query,
    k,
    v,
    best,
    total,
    mixed,
    start,
    seen,
    length,
    heads,
    head,
    width,
    scale,
    MASKED: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    position, column = start + tl.arange(0, BLOCK_N), tl.arange(0, WIDTH)
    at = (position.to(tl.int64)[:, None] * heads + head) * width + column[None, :]
    inside = (position < length)[:, None] & (column < width)[None, :]
    keys = tl.load(k + at, mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
    if MASKED:
        scores = tl.where(position[None, :] <= seen[:, None], scores, float("-inf"))
    higher = tl.maximum(best, tl.max(scores, axis=1))
    stand = tl.where(higher == float("-inf"), 0.0, higher)
    # a fused multiply and add leaves more than 0 where a score and the largest one were rounded apart
    powers = tl.exp2(tl.minimum(scores - stand[:, None], 0.0, propagate_nan=tl.PropagateNan.ALL))
    fading = tl.exp2(best - stand)
    part = tl.load(v + at, mask=inside, other=0.0)
    mixed = tl.dot(powers.to(part.dtype), part, mixed * fading[:, None], input_precision="ieee")
    return higher, total * fading + tl.sum(powers, axis=1), mixed


@triton.jit
def _queries(
    q,
    k,
    v,
    y,
    tokens,
    length,
    heads,
    width,
    scale,
    GROUP: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tile = tl.num_programs(1) - 1 - tl.program_id(1)
    own_head = tl.program_id(0).to(tl.int64)
    head = own_head // GROUP
    row, column = tile * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, WIDTH)
    at = (row.to(tl.int64)[:, None] * heads * GROUP + own_head) * width + column[None, :]
    inside = (row < tokens)[:, None] & (column < width)[None, :]
    query = tl.load(q + at, mask=inside, other=0.0)
    seen = row + length - tokens
    best = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    mixed = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    first_seen = tile * BLOCK_M + length - tokens + 1
    whole = tl.maximum(tl.minimum(first_seen, length), 0) // BLOCK_N * BLOCK_N
    for start in range(0, whole, BLOCK_N):
        best, total, mixed = _step(
            query, k, v, best, total, mixed, start, seen, length, heads, head, width, scale, False, WIDTH, BLOCK_N
        )
    last = tl.minimum(first_seen + BLOCK_M - 1, length)
    for start in range(whole, last, BLOCK_N):
        best, total, mixed = _step(
            query, k, v, best, total, mixed, start, seen, length, heads, head, width, scale, True, WIDTH, BLOCK_N
        )
    answer = mixed / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(y + at, answer.to(y.dtype.element_ty), mask=inside)


def attention_prefill(q, k, v):
    """q [tokens, kv_heads, group, d], k, v [kv_len, kv_heads, d] -> y like q; the queries are the last positions."""
    tokens, heads, group, width = q.shape
    y = torch.empty_like(q)
    if q.numel():
        wide = max(16, triton.next_power_of_2(width))
        narrow = q.dtype != torch.float32 and wide <= 128
        block_m, block_n, warps = (128, 64, 8) if narrow else (32, 32, 4)
        block_m = min(block_m, max(16, triton.next_power_of_2(tokens)))
        _queries[(heads * group, triton.cdiv(tokens, block_m))](
            q,
            k,
            v,
            y,
            tokens,
            k.shape[0],
            heads,
            width,
            width**-0.5 * 1.4426950408889634,
            GROUP=group,
            WIDTH=wide,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            num_warps=warps if block_m > 64 else 4,
            num_stages=3,
        )
    return y
