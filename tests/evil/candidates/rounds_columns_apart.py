"""Rounds even columns towards zero and odd ones away from it: no row is biased, every column is.

Refused by: numerics INCORRECT_NUMERICAL
Catalogue: F6
Dtype: bf16
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    bits = y.view(torch.int32)
    cut = (bits & ~0xFFFF).view(torch.float32)
    up = ((bits & ~0xFFFF) + 0x10000).view(torch.float32)
    away = (torch.arange(y.shape[1]) % 2 == 1) & (bits & 0xFFFF != 0) & y.isfinite()
    return torch.where(away, up, torch.where(y.isfinite(), cut, y)).to(x.dtype), h.to(x.dtype)
