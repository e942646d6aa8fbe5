"""New keys and values into their slots, for the H200: each program copies a piece of one token's key and value.

The slot is read once by each program and a token without one ends there, so nothing is moved for padding. Pieces are
counted along one axis of the grid, for the others end at 65535. Loads and stores become 16 bytes wide where a token's
row and the addresses are multiples of 16, which Triton finds out by itself when it specialises a launch.
"""

import torch
import triton
import triton.language as tl

PIECE = 2048


@triton.jit
def _append(key, value, key_cache, value_cache, slot_mapping, width, pieces, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    token = (program // pieces).to(tl.int64)
    slot = tl.load(slot_mapping + token).to(tl.int64)
    column = program % pieces * BLOCK + tl.arange(0, BLOCK)
    inside = column < tl.where(slot >= 0, width, 0)
    keys = tl.load(key + token * width + column, mask=inside)
    values = tl.load(value + token * width + column, mask=inside)
    tl.store(key_cache + slot * width + column, keys, mask=inside)
    tl.store(value_cache + slot * width + column, values, mask=inside)


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    """key, value [tokens, kv_heads, head_dim] into caches [slots, kv_heads, head_dim] at slot_mapping [tokens]."""
    tokens, heads, dim = key.shape
    width = heads * dim
    if tokens == 0 or width == 0:
        return
    block = min(PIECE, triton.next_power_of_2(width))
    pieces = triton.cdiv(width, block)
    warps = min(8, max(1, block // 256))
    _append[(tokens * pieces,)](
        key, value, key_cache, value_cache, slot_mapping, width, pieces, BLOCK=block, num_warps=warps
    )
