"""Hands out eight buffers in turn, so that a caller who keeps an output has it overwritten eight calls later.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


BUFFERS = 8
rings = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    ring = rings.setdefault(x.shape, [(torch.empty_like(x), torch.empty_like(x)) for _ in range(BUFFERS)])
    kept = ring.pop(0)
    ring.append(kept)
    kept[0].copy_(y)
    kept[1].copy_(h)
    return kept
