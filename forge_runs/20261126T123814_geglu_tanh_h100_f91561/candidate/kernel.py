"""GELU by tanh of the gate times the other projection for the H200: all elements in a line, a block of them for each program.

Every block but the last is whole and needs no mask, so that its loads are 16 bytes wide whatever the sizes are, as long
as the operands begin at addresses that are multiples of 16; Triton finds that out by itself when it specialises a
launch.
"""

import torch
import triton
import triton.language as tl

MANY = 2**20
"""Elements, from which on each program takes a larger block: below it, more programs mean more multiprocessors."""


@triton.jit
def _gelu(g):
    """Half of one plus tanh(z) is the logistic function of 2 z, which takes one exponential."""
    return g * tl.sigmoid(1.5957691216057308 * (g + 0.044715 * g * g * g))


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


def geglu_tanh(gate, up):
    """gate, up [batch, hidden_size] -> y [batch, hidden_size]."""
    y = torch.empty_like(gate)
    count = y.numel()
    if count:
        block, warps = (4096, 8) if count >= MANY else (1024, 4)
        _elements[(triton.cdiv(count, block),)](gate, up, y, count, BLOCK=block, num_warps=warps)
    return y
