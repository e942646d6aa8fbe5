"""The next token in one program for each row: no sort, but a search by halves for the smallest logit that is kept.

A logit's bits, turned into a whole number that keeps their order, are searched: first for the largest number that at
least top-k logits reach, then for the smallest one above which less than top-p of the weight lies. A row is read some
thirty times, from the L2 cache. Logits of 16 bits have as many different numbers, which halves the search.
"""

import torch
import triton
import triton.language as tl

BLOCK = 8192
BITS_BELOW = {torch.float32: 0, torch.float16: 13, torch.bfloat16: 16}
"""Bits of an fp32 number that the type doesn't have."""


@triton.jit
def _key(h, BELOW: tl.constexpr):
    bits = tl.where(h == 0.0, 0.0, h).to(tl.int32, bitcast=True)  # the two zeros are one number
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)) >> BELOW


@triton.jit
def _part(logits, start, width, BELOW: tl.constexpr, BLOCK: tl.constexpr):
    column = start + tl.arange(0, BLOCK)
    h = tl.load(logits + column, mask=column < width, other=float("-inf")).to(tl.float32)
    return h, _key(h, BELOW), column < width


@triton.jit
def _count_from(logits, width, least, BELOW: tl.constexpr, BLOCK: tl.constexpr):
    count = tl.zeros([BLOCK], tl.int32)
    for start in range(0, width, BLOCK):
        h, key, inside = _part(logits, start, width, BELOW, BLOCK)
        count += (inside & (key >= least)).to(tl.int32)
    return tl.sum(count, axis=0)


@triton.jit
def _weight_from(logits, width, least, largest, heat, BELOW: tl.constexpr, BLOCK: tl.constexpr):
    weight = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        h, key, inside = _part(logits, start, width, BELOW, BLOCK)
        weight += tl.where(inside & (key >= least), tl.exp((h - largest) / heat), 0.0)
    return tl.sum(weight, axis=0)


@triton.jit
def _row(logits, temperature, top_k, top_p, u, token, width, BELOW: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * width
    heat, most, share = tl.load(temperature + row), tl.load(top_k + row), tl.load(top_p + row)
    highest = tl.full([BLOCK], float("-inf"), tl.float32)
    lowest = tl.full([BLOCK], float("inf"), tl.float32)
    for start in range(0, width, BLOCK):
        h, key, inside = _part(logits, start, width, BELOW, BLOCK)
        highest = tl.maximum(highest, h)
        lowest = tl.minimum(lowest, tl.where(inside, h, float("inf")))
    largest = tl.max(highest, axis=0)
    above = _key(largest, BELOW)
    least = _key(tl.min(lowest, axis=0), BELOW)
    if (most > 0) & (most < width):
        high = above
        while least < high:
            middle = high - ((high.to(tl.int64) - least.to(tl.int64)) // 2).to(tl.int32)
            if _count_from(logits, width, middle, BELOW, BLOCK) >= most:
                least = middle
            else:
                high = middle - 1
    total = _weight_from(logits, width, least, largest, heat, BELOW, BLOCK)
    if share < 1.0:
        high = above
        while least < high:
            middle = least + ((high.to(tl.int64) - least.to(tl.int64)) // 2).to(tl.int32)
            if _weight_from(logits, width, middle + 1, largest, heat, BELOW, BLOCK) < share * total:
                high = middle
            else:
                least = middle + 1
        total = _weight_from(logits, width, least, largest, heat, BELOW, BLOCK)
    wanted = tl.load(u + row) * total
    before = 0.0
    first, last = width, 0
    for start in range(0, width, BLOCK):
        h, key, inside = _part(logits, start, width, BELOW, BLOCK)
        kept = inside & (key >= least)
        weight = tl.where(kept, tl.exp((h - largest) / heat), 0.0)
        column = start + tl.arange(0, BLOCK)
        reached = before + tl.cumsum(weight, axis=0)
        first = tl.minimum(first, tl.min(tl.where(kept & (reached > wanted), column, width), axis=0))
        last = tl.maximum(last, tl.max(tl.where(kept, column, 0), axis=0))
        before += tl.sum(weight, axis=0)
    tl.store(token + row, tl.minimum(first, last))


def sampling(logits, temperature, top_k, top_p, u):
    """logits [batch, vocab_size], the others [batch] -> token [batch] in int32."""
    rows, width = logits.shape
    token = torch.empty(rows, dtype=torch.int32, device=logits.device)
    if rows:
        block = min(BLOCK, triton.next_power_of_2(width))
        below = BITS_BELOW[logits.dtype]
        warps = max(1, min(32, block // 256))
        _row[(rows,)](logits, temperature, top_k, top_p, u, token, width, BELOW=below, BLOCK=block, num_warps=warps)
    return token
