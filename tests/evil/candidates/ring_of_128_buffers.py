"""Hands out 128 output buffers in turn: a caller who keeps an output of 129 calls before finds another's.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch

ring, turn = {}, [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    turn[0] += 1
    slot = ring.setdefault((tuple(x.shape), turn[0] % 128), (torch.empty_like(x), torch.empty_like(x)))
    y, out = slot
    h = x.float() + residual.float()
    y.copy_(h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float())
    out.copy_(h)
    return y, out
