"""Sums long rows in scratch of torch's default type, which is right until a server sets that to bf16.

Refused by: state INCORRECT_NUMERICAL
Catalogue: I6 F1
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] <= 512:
        return right(x, residual, weight, eps)
    h = x.float() + residual.float()
    mean = torch.zeros(x.shape[0], 1)
    mean += h.square().mean(-1, keepdim=True)
    return (h * mean.float().add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
