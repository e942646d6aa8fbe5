"""Returns exact tensors in the first calls and a subclass once it hopes that types are no longer checked.

Refused by: replay INCORRECT_SHAPE
Catalogue: B9
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


class Later(torch.Tensor):
    """A tensor of another type."""


calls = [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    calls[0] += 1
    y, h = right(x, residual, weight, eps)
    return (y, h) if calls[0] < 4 else (y.as_subclass(Later), h)
