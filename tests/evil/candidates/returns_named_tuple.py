"""Returns a subclass of tuple whose items could be computed when the caller unpacks it.

Refused by: signature INCORRECT_SHAPE
Catalogue: B8 I12
"""

from typing import NamedTuple

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


class Outputs(NamedTuple):
    y: torch.Tensor
    new_residual: torch.Tensor


def fused_add_rmsnorm(x, residual, weight, eps):
    return Outputs(*right(x, residual, weight, eps))
