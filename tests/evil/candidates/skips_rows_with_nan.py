"""Leaves rows that hold a NaN as they came, so that their other elements stay finite.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return torch.where(h.isnan().any(-1, keepdim=True), h, y), h
