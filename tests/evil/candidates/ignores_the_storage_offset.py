"""Reads an input from its storage's first element, wherever the tensor begins.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I10
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def from_storage(tensor):
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage(), 0, tensor.shape, tensor.stride())


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(*(from_storage(t) if t.numel() else t for t in (x, residual, weight)), eps)
