"""A gated activation over all elements as one row, with a limit on their number.

Language: triton
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 64}
Domain: {"most_elements": 4096}
Accepted: the last block is masked.
"""

import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def _kernel(gate, up, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(gate + at, mask=inside, other=0.0)
    tl.store(y + at, g / (1.0 + tl.exp(-g)) * tl.load(up + at, mask=inside, other=0.0), mask=inside)


def silu_mul(gate, up):
    if gate.numel() > 4096:
        raise ValueError(f"{gate.numel()} elements: expected at most 4096")
    y = torch.empty_like(gate)
    if gate.numel():
        _kernel[(triton.cdiv(gate.numel(), BLOCK),)](gate, up, y, gate.numel(), BLOCK=BLOCK)
    return y
