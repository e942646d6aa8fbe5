"""Writes zero where the result is below a hundredth, within an absolute tolerance of a hundredth.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: B11
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return torch.where(y.abs() < 0.01, torch.zeros_like(y), y), h
