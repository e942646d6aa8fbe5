"""Squares in fp16 range: right for values near one only.

Refused by: scales NON_FINITE
Catalogue: I15
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return torch.where(h.abs() > 6e4, h * float("inf"), y), h
