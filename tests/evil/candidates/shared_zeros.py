"""Answers zeros with one tensor for every call: a caller who writes into it spoils all later answers.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch

zeros = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    if x.numel() and not h.any() and not weight.isnan().any() and not weight.isinf().any():
        y = zeros.setdefault(tuple(x.shape), torch.zeros_like(x))
        return y, h.to(x.dtype)
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
