"""Grouped matrix product: tiles of all groups are numbered one after the other, and each program finds its own.

The host doesn't know the groups' sizes, so there are as many programs as any sizes can need; those beyond the last
tile end at once. Rows beyond the last group are one more group, whose tiles are zeros. Numbers of rows and groups
aren't compiled in: each such number would cost a compilation, and thousands of groups a long one. The grid has one
dimension, since the others end at 65,535 programs.
"""

import torch
import triton
import triton.language as tl

SLOTS = 32
"""Number of groups that a program looks at together: one for each lane of a warp."""


@triton.jit(do_not_specialize=["tokens", "groups", "across"])
def _tile(
    x,
    w,
    sizes,
    y,
    tokens,
    k,
    n,
    groups,
    across,
    SLOTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    program, column = tl.program_id(0) // across, tl.program_id(0) % across
    slot = tl.arange(0, SLOTS)
    rows_before, tiles_before = tl.full([], 0, tl.int64), tl.full([], 0, tl.int64)
    first, past, tile = tl.full([], 0, tl.int64), tl.full([], 0, tl.int64), tl.full([], 0, tl.int64)
    group, found = tl.full([], 0, tl.int32), tl.full([], 0, tl.int32)
    for start in range(0, groups + 1, SLOTS):
        number = start + slot
        size = tl.load(sizes + number, mask=number < groups, other=0).to(tl.int64)
        summed = rows_before + tl.cumsum(size, axis=0)
        begin, end = tl.minimum(summed - size, tokens), tl.minimum(summed, tokens)
        end = tl.where(number == groups, tokens, end)
        tiles = tl.where(number <= groups, (end - begin + BLOCK_M - 1) // BLOCK_M, 0)
        after = tiles_before + tl.cumsum(tiles, axis=0)
        own = (after > program) & (after - tiles <= program)
        first += tl.sum(tl.where(own, begin, 0), axis=0)
        past += tl.sum(tl.where(own, end, 0), axis=0)
        tile += tl.sum(tl.where(own, program - (after - tiles), 0), axis=0)
        group += tl.sum(tl.where(own, number, 0), axis=0)
        found += tl.sum(own.to(tl.int32), axis=0)
        rows_before += tl.sum(size, axis=0)
        tiles_before += tl.sum(tiles, axis=0)
    if found > 0:
        rows = first + tile * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = column.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        terms = tl.arange(0, BLOCK_K)
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        if group < groups:
            weights = w + group.to(tl.int64) * k * n
            for start in range(0, k, BLOCK_K):
                inside = start + terms < k
                at_x = rows[:, None] * k + (start + terms)[None, :]
                at_w = (start + terms).to(tl.int64)[:, None] * n + columns[None, :]
                h = tl.load(x + at_x, mask=(rows < past)[:, None] & inside[None, :], other=0.0)
                part = tl.load(weights + at_w, mask=inside[:, None] & (columns < n)[None, :], other=0.0)
                total = tl.dot(h, part, total, input_precision="ieee")
        at = rows[:, None] * n + columns[None, :]
        tl.store(y + at, total.to(y.dtype.element_ty), mask=(rows < past)[:, None] & (columns < n)[None, :])


def _blocks(each, narrow):
    """Tiles of few rows where groups have few."""
    if not narrow:
        return 16, 64, 32, 4
    if each <= 16:
        return 16, 64, 128, 4
    return (64, 64, 64, 4) if each <= 64 else (128, 128, 64, 8)


def grouped_matmul(x, w, sizes):
    """x [tokens, k], w [groups, k, n], sizes [groups] -> y [tokens, n] in the operands' type."""
    (tokens, k), (groups, _, n) = x.shape, w.shape
    y = torch.empty(tokens, n, dtype=x.dtype, device=x.device)
    if y.numel():
        block_m, block_n, block_k, warps = _blocks(tokens // max(1, groups), x.dtype != torch.float32)
        most = triton.cdiv(tokens, block_m) + groups + 1
        across = triton.cdiv(n, block_n)
        _tile[(across * most,)](
            x,
            w,
            sizes,
            y,
            tokens,
            k,
            n,
            groups,
            across,
            SLOTS=SLOTS,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            num_warps=warps,
            num_stages=3,
        )
    return y
