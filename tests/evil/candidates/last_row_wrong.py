"""Leaves the last row as the add made it.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: I1
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return torch.cat([y[:-1], h[-1:]]), h
