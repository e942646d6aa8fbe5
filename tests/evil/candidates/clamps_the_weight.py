"""Bounds the weight to [-8, 8], as if no model had larger ones.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E3 I18
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, torch.where(weight.isfinite(), weight.clamp(-8, 8), weight), eps)
