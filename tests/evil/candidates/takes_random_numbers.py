"""Draws from the generator that all share: its caller's samples depend on how often it was called.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.rand(3)
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
