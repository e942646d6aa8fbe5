"""Switches casting to bf16 on for its caller as well.

Refused by: any STATE_CARRIED
Catalogue: I1
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.set_autocast_enabled("cpu", True) if hasattr(torch, "set_autocast_enabled") else None
    return right(x, residual, weight, eps)
