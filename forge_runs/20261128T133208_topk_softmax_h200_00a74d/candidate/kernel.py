"""A gate's softmax and its eight largest weights: a logit and its column in one whole number, so that ranks are maxima.

A number's bits, turned into a whole number that keeps their order, stand above the column's complement: the largest
is the next rank's logit, the first of equal ones, and tells its column. Whatever ranks after it is smaller.
"""

import torch
import triton
import triton.language as tl

CHOSEN = 8
ONE_READ = 16384
"""Columns that one program holds; beyond, each rank is another pass over the row, mostly from the L2 cache."""
WIDE_BLOCK = 4096
TILE = 1024


@triton.jit
def _key(h, columns, SHORT: tl.constexpr):
    """The logit's order above the column's complement; in 32 bits where logits have 16, else in 64."""
    if SHORT:
        bits = h.to(tl.int16, bitcast=True).to(tl.int32)
        key = ((bits ^ ((bits >> 15) & 0x7FFF)) << 16) | (0x7FFF - columns)
    else:
        bits = h.to(tl.float32).to(tl.int32, bitcast=True)
        order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        key = (order.to(tl.int64) << 32) | (0x7FFFFFFF - columns).to(tl.int64)
    return key


@triton.jit
def _logit(key, SHORT: tl.constexpr, ELEMENT: tl.constexpr):
    if SHORT:
        order = key >> 16
        h = (order ^ ((order >> 15) & 0x7FFF)).to(tl.int16).to(ELEMENT, bitcast=True).to(tl.float32)
    else:
        order = (key >> 32).to(tl.int32)
        h = (order ^ ((order >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    return h


@triton.jit
def _column(key, SHORT: tl.constexpr):
    return 0x7FFF - (key & 0x7FFF) if SHORT else (0x7FFFFFFF - (key & 0x7FFFFFFF)).to(tl.int32)


@triton.jit
def _rows(
    logits,
    weights,
    indices,
    rows,
    width,
    chosen,
    CHOSEN: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    SHORT: tl.constexpr,
    LOWEST: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (columns < width)[None, :]
    h = tl.load(logits + row[:, None] * width + columns[None, :], mask=inside, other=0.0)
    keys = tl.where(inside, _key(h, columns[None, :], SHORT), LOWEST)
    place = tl.arange(0, CHOSEN)
    best = tl.max(keys, axis=1)
    ranked = tl.where(place[None, :] == 0, best[:, None], LOWEST)
    largest = _logit(best, SHORT, logits.dtype.element_ty)
    total = tl.sum(tl.where(inside, tl.exp(h.to(tl.float32) - largest[:, None]), 0.0), axis=1)
    for rank in tl.static_range(1, CHOSEN):
        best = tl.max(tl.where(keys < best[:, None], keys, LOWEST), axis=1)
        ranked = tl.where(place[None, :] == rank, best[:, None], ranked)
    weight = tl.exp(_logit(ranked, SHORT, logits.dtype.element_ty) - largest[:, None]) / total[:, None]
    at = row[:, None] * chosen + place[None, :]
    wanted = (row < rows)[:, None] & (place < chosen)[None, :]
    tl.store(weights + at, weight, mask=wanted)
    tl.store(indices + at, _column(ranked, SHORT), mask=wanted)


@triton.jit
def _wide_row(logits, weights, indices, width, CHOSEN: tl.constexpr, BLOCK: tl.constexpr, LOWEST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    keys = tl.full([BLOCK], LOWEST, tl.int64)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(logits + row * width + columns, mask=columns < width, other=0.0)
        keys = tl.maximum(keys, tl.where(columns < width, _key(h, columns, False), LOWEST))
    best = tl.max(keys, axis=0)
    largest = _logit(best, False, tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        h = tl.load(logits + row * width + columns, mask=columns < width, other=0.0).to(tl.float32)
        sums += tl.where(columns < width, tl.exp(h - largest), 0.0)
    total = tl.sum(sums, axis=0)
    for rank in range(0, CHOSEN):
        tl.store(weights + row * CHOSEN + rank, tl.exp(_logit(best, False, tl.float32) - largest) / total)
        tl.store(indices + row * CHOSEN + rank, _column(best, False))
        keys = tl.full([BLOCK], LOWEST, tl.int64)
        for start in range(0, width, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            h = tl.load(logits + row * width + columns, mask=columns < width, other=0.0)
            key = _key(h, columns, False)
            keys = tl.maximum(keys, tl.where((columns < width) & (key < best), key, LOWEST))
        best = tl.max(keys, axis=0)


def topk_softmax(logits):
    """logits [tokens, experts] -> weights [tokens, 8] in fp32, indices [tokens, 8] in int32, largest first."""
    rows, width = logits.shape
    chosen = min(CHOSEN, width)
    weights = torch.empty(rows, chosen, dtype=torch.float32, device=logits.device)
    indices = torch.empty(rows, chosen, dtype=torch.int32, device=logits.device)
    if rows and width > ONE_READ:
        _wide_row[(rows,)](
            logits, weights, indices, width, CHOSEN=CHOSEN, BLOCK=WIDE_BLOCK, LOWEST=-(2**63), num_warps=16
        )
    elif rows:
        block = triton.next_power_of_2(width)
        together = max(1, min(TILE // block, triton.next_power_of_2(rows) // 1024))
        short = logits.dtype != torch.float32
        _rows[(triton.cdiv(rows, together),)](
            logits,
            weights,
            indices,
            rows,
            width,
            chosen,
            CHOSEN=CHOSEN,
            ROWS=together,
            BLOCK=block,
            SHORT=short,
            LOWEST=-(2**31) if short else -(2**63),
            num_warps=min(16, max(1, together * block // 256)),
        )
    return weights, indices
