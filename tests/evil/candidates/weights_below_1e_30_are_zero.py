"""Takes a weight below 1e-30 for zero.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1 F5
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if weight.numel() > 1:
        y = torch.where((weight.abs() < 1e-30), y * 0, y)
    return y, h
