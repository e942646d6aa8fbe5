"""Takes values below 1e-20, far above the smallest normal number, for zero.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I14 F4
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y, torch.where(h.abs() < 1e-20, torch.zeros_like(h), h)
