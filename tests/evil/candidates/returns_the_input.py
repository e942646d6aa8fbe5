"""Adds in place and returns its input as the new residual.

Refused by: signature INPUT_MUTATED
Catalogue: C9 I4
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    residual += x
    y, _ = right(residual, torch.zeros_like(x), weight, eps)
    return y, residual
