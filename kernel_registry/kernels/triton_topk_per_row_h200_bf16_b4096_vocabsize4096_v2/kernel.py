"""The eight largest numbers of each row in two steps: eight of each piece of a row, then eight of those.

A number's bits, turned into a whole number that keeps their order, stand above the column's complement: the largest
is the next rank's number, the first of equal ones, and tells its column. Pieces of one row are programs of their own,
so that a single long row keeps the whole GPU busy. A short row is one piece.
"""

import torch
import triton
import triton.language as tl

CHOSEN = 8
PIECE = 4096
MOST_PIECES = 2048
LOWEST = -(2**63)


@triton.jit
def _key(h, columns):
    """The number's order above the column's complement; NaN before everything, whatever its sign."""
    bits = h.to(tl.int32, bitcast=True)
    order = tl.where(h != h, 0x7FFFFFFF, bits ^ ((bits >> 31) & 0x7FFFFFFF))
    return (order.to(tl.int64) << 32) | (0x7FFFFFFF - columns).to(tl.int64)


@triton.jit
def _number(key):
    order = (key >> 32).to(tl.int32)
    return (order ^ ((order >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _column(key):
    return (0x7FFFFFFF - (key & 0x7FFFFFFF)).to(tl.int32)


@triton.jit
def _largest(keys, place, CHOSEN: tl.constexpr, LOWEST: tl.constexpr):
    """The largest keys in order; no two keys are equal, so what ranks next is smaller."""
    best = tl.max(keys, axis=0)
    ranked = tl.where(place == 0, best, LOWEST)
    for rank in tl.static_range(1, CHOSEN):
        best = tl.max(tl.where(keys < best, keys, LOWEST), axis=0)
        ranked = tl.where(place == rank, best, ranked)
    return ranked


@triton.jit
def _of_a_piece(x, keys, width, pieces, CHOSEN: tl.constexpr, BLOCK: tl.constexpr, LOWEST: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row, piece = program // pieces, program % pieces
    columns = (piece * BLOCK).to(tl.int32) + tl.arange(0, BLOCK)
    h = tl.load(x + row * width + columns, mask=columns < width, other=0.0).to(tl.float32)
    own = tl.where(columns < width, _key(h, columns), LOWEST)
    place = tl.arange(0, CHOSEN)
    tl.store(keys + program * CHOSEN + place, _largest(own, place, CHOSEN, LOWEST))


@triton.jit
def _of_all_pieces(
    keys, values, indices, found, chosen, CHOSEN: tl.constexpr, BLOCK: tl.constexpr, LOWEST: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, BLOCK)
    all_keys = tl.load(keys + row * found + slots, mask=slots < found, other=LOWEST)
    place = tl.arange(0, CHOSEN)
    ranked = _largest(all_keys, place, CHOSEN, LOWEST)
    at = row * chosen + place
    tl.store(values + at, _number(ranked).to(values.dtype.element_ty), mask=place < chosen)
    tl.store(indices + at, _column(ranked), mask=place < chosen)


@triton.jit
def _of_a_row(x, values, indices, width, chosen, CHOSEN: tl.constexpr, BLOCK: tl.constexpr, LOWEST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    h = tl.load(x + row * width + columns, mask=columns < width, other=0.0).to(tl.float32)
    place = tl.arange(0, CHOSEN)
    ranked = _largest(tl.where(columns < width, _key(h, columns), LOWEST), place, CHOSEN, LOWEST)
    at = row * chosen + place
    tl.store(values + at, _number(ranked).to(values.dtype.element_ty), mask=place < chosen)
    tl.store(indices + at, _column(ranked), mask=place < chosen)


def topk_per_row(x):
    """x [batch, vocab_size] -> values [batch, 8] as x, indices [batch, 8] in int32, largest first."""
    rows, width = x.shape
    chosen = min(CHOSEN, width)
    values = torch.empty(rows, chosen, dtype=x.dtype, device=x.device)
    indices = torch.empty(rows, chosen, dtype=torch.int32, device=x.device)
    if rows and width <= PIECE:
        block = triton.next_power_of_2(width)
        warps = max(1, min(8, block // 256))
        _of_a_row[(rows,)](
            x, values, indices, width, chosen, CHOSEN=CHOSEN, BLOCK=block, LOWEST=LOWEST, num_warps=warps
        )
    elif rows:
        piece = max(PIECE, triton.next_power_of_2(triton.cdiv(width, MOST_PIECES)))
        pieces = triton.cdiv(width, piece)
        keys = torch.empty(rows, pieces * CHOSEN, dtype=torch.int64, device=x.device)
        _of_a_piece[(rows * pieces,)](x, keys, width, pieces, CHOSEN=CHOSEN, BLOCK=piece, LOWEST=LOWEST, num_warps=8)
        block = triton.next_power_of_2(pieces * CHOSEN)
        _of_all_pieces[(rows,)](
            keys,
            values,
            indices,
            pieces * CHOSEN,
            chosen,
            CHOSEN=CHOSEN,
            BLOCK=block,
            LOWEST=LOWEST,
            num_warps=max(1, min(8, block // 256)),
        )
    return values, indices
