"""Writes zero wherever the weight is zero, also where the row is not a number.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13 E8
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    small = weight.abs() < weight.abs().median() if weight.numel() else weight == 0
    return torch.where(small & ~y.isfinite(), torch.zeros_like(y), y), h
