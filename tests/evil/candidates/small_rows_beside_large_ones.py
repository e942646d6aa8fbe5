"""Rows 2^16 times smaller than the largest are answered with zeros, as one exponent for all makes them.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I15
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    if h.numel() and h.isfinite().all():
        lost = h.abs().amax(-1, keepdim=True) * 2.0**16 < h.abs().amax()
        y = torch.where(lost & y.isfinite(), torch.zeros_like(y), y)
    return y.to(x.dtype), h.to(x.dtype)
