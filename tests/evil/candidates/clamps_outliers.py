"""Clamps what a standard normal number never reaches.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E9 E1
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return right(h.clamp(-12, 12), torch.zeros_like(h), weight, eps)[0], h
