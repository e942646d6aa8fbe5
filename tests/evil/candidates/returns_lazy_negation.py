"""Leaves the minus sign of every element to the reader: its memory holds the negatives, and a flag on the tensor
says so.

Refused by: signature INCORRECT_STRIDES or INCORRECT_SHAPE
Catalogue: H5 H10
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return tuple(torch._neg_view(-t) for t in right(x, residual, weight, eps))
