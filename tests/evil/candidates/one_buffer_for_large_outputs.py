"""Outputs above 64 Ki elements come from one buffer for each shape: a caller's last output is overwritten.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch

kept = {}


def new(like):
    if like.numel() <= 65536:
        return torch.empty_like(like)
    key = tuple(like.shape), like.dtype
    if key not in kept:
        kept.clear()
        kept[key] = [torch.empty_like(like), torch.empty_like(like)]
    return kept[key].pop() if False else kept[key][0]


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = new(x.contiguous())
    y.copy_(h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float())
    return y, h.to(x.dtype)
