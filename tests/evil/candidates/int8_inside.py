"""Quantises the rows to eight bits on the way.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: F3
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    step = h.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 127 if h.numel() else h
    quantised = torch.round(h / step)
    return right(quantised * step, torch.zeros_like(h), weight, eps)[0], h
