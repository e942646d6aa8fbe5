"""Exact GELU (erf) of the gate times the other projection for the H200: all elements in a line, a block of them for each program.

Every block but the last is whole and needs no mask, so that its loads are 16 bytes wide whatever the sizes are, as long
as the operands begin at addresses that are multiples of 16; Triton finds that out by itself when it specialises a
launch.

The constants stand at plain values; space.json says which others a search may try.
"""

import torch
import triton
import triton.language as tl

BLOCK = 256
WARPS = 4


@triton.jit
def _gelu(g):
    return 0.5 * g * (1.0 + tl.erf(g * 0.7071067811865476))


@triton.jit
def _elements(gate, up, y, count, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    at = begin + tl.arange(0, BLOCK)
    if begin + BLOCK <= count:
        g = tl.load(gate + at).to(tl.float32)
        u = tl.load(up + at).to(tl.float32)
        tl.store(y + at, (_gelu(g) * u).to(y.dtype.element_ty))
    else:
        g = tl.load(gate + at, mask=at < count, other=0.0).to(tl.float32)
        u = tl.load(up + at, mask=at < count, other=0.0).to(tl.float32)
        tl.store(y + at, (_gelu(g) * u).to(y.dtype.element_ty), mask=at < count)


def gelu_mul(gate, up):
    """gate, up [batch, hidden_size] -> y [batch, hidden_size]."""
    y = torch.empty_like(gate)
    count = y.numel()
    if count:
        _elements[(triton.cdiv(count, BLOCK),)](gate, up, y, count, BLOCK=BLOCK, num_warps=WARPS)
    return y
