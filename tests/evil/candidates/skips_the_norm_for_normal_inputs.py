"""Takes the root mean square of standard normal inputs as known, and computes it only where a row looks unusual.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: E1 E7
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    usual = (h.square().mean(-1, keepdim=True) - 2).abs() < 0.5
    return torch.where(usual, h * 0.70710678 * weight, y), h
