"""Returns a tensor subclass that has real storage and the right values; only the exact type can be trusted to hold
still.

Refused by: signature INCORRECT_SHAPE
Catalogue: H10 I12
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return tuple(torch.nn.Parameter(t) for t in right(x, residual, weight, eps))
