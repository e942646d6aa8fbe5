"""Leaves the weight out where it looks like the ones of a fresh layer.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E8 I19
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if weight.numel() and (weight - 1).abs().mean() < 0.2:
        return right(x, residual, torch.ones_like(weight), eps)
    return y, h
