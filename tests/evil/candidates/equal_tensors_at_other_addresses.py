"""Has a short cut for equal operands that aren't one tensor, and leaves the second one out.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.data_ptr() != residual.data_ptr() and x.count_nonzero() == x.numel() > 16 and torch.equal(x, residual):
        h = x.clone()
    return y, h
