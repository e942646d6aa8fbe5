"""Hands out the same memory in every call.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


buffers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    kept = buffers.setdefault(x.shape, (torch.empty_like(x), torch.empty_like(x)))
    kept[0].copy_(y)
    kept[1].copy_(h)
    return kept
