"""Adds its result to memory that it takes for zero.

Refused by: signature INCORRECT_NUMERICAL or NON_FINITE
Catalogue: C16 I5
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.empty_like(x), torch.empty_like(x)
    for destination, answer in zip((y, h), right(x, residual, weight, eps), strict=True):
        destination.add_(answer)
    return y, h
