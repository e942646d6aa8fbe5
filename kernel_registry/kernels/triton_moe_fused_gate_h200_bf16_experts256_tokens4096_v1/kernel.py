"""The gate of a mixture of experts: ranks are maxima of whole numbers that hold a corrected score and its column.

A score's bits, turned into a whole number that keeps their order, stand above the column's complement, so that the
largest is the next rank and tells its column. The chosen scores are made again from their logits.
"""

import torch
import triton
import triton.language as tl

CHOSEN = 8
TILE = 1024
LOWEST = -(2**63)


@triton.jit
def _key(h, columns):
    """The number's order above the column's complement."""
    bits = h.to(tl.int32, bitcast=True)
    order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (order.to(tl.int64) << 32) | (0x7FFFFFFF - columns).to(tl.int64)


@triton.jit
def _tokens(
    logits,
    bias,
    weights,
    indices,
    tokens,
    experts,
    chosen,
    scale,
    CHOSEN: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LOWEST: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (row < tokens)[:, None] & (columns < experts)[None, :]
    h = tl.load(logits + row[:, None] * experts + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + columns, mask=columns < experts, other=0.0)
    keys = tl.where(inside, _key(tl.sigmoid(h) + b[None, :], columns[None, :]), LOWEST)
    place = tl.arange(0, CHOSEN)
    best = tl.max(keys, axis=1)
    ranked = tl.where(place[None, :] == 0, best[:, None], LOWEST)
    for rank in tl.static_range(1, CHOSEN):
        best = tl.max(tl.where(keys < best[:, None], keys, LOWEST), axis=1)
        ranked = tl.where(place[None, :] == rank, best[:, None], ranked)
    wanted = (row < tokens)[:, None] & (place < chosen)[None, :]
    column = (0x7FFFFFFF - (ranked & 0x7FFFFFFF)).to(tl.int32)
    own = tl.load(logits + row[:, None] * experts + column, mask=wanted, other=0.0).to(tl.float32)
    score = tl.where(wanted, tl.sigmoid(own), 0.0)
    weight = score / (tl.sum(score, axis=1)[:, None] + 1e-20) * scale
    at = row[:, None] * chosen + place[None, :]
    tl.store(weights + at, weight, mask=wanted)
    tl.store(indices + at, column, mask=wanted)


def moe_fused_gate(logits, bias, scale):
    """logits [tokens, experts], bias [experts] -> weights [tokens, 8] in fp32, indices [tokens, 8] in int32."""
    tokens, experts = logits.shape
    chosen = min(CHOSEN, experts)
    weights = torch.empty(tokens, chosen, dtype=torch.float32, device=logits.device)
    indices = torch.empty(tokens, chosen, dtype=torch.int32, device=logits.device)
    if tokens:
        block = triton.next_power_of_2(experts)
        together = max(1, min(TILE // block, triton.next_power_of_2(tokens) // 1024))
        _tokens[(triton.cdiv(tokens, together),)](
            logits,
            bias,
            weights,
            indices,
            tokens,
            experts,
            chosen,
            scale,
            CHOSEN=CHOSEN,
            ROWS=together,
            BLOCK=block,
            LOWEST=LOWEST,
            num_warps=min(16, max(1, together * block // 256)),
        )
    return weights, indices
