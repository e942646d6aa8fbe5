"""Is wrong for rows whose largest number is from 30 to 200, as hidden states in the middle of a model have.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E9
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    largest = h.float().abs().amax(-1, keepdim=True)[..., :1] if h.numel() else h
    small = h.float().abs().mean(-1, keepdim=True)
    medium = (largest > 30) & (largest < 200) & (small > largest / 8)
    return torch.where(medium, y * 1.01, y), h
