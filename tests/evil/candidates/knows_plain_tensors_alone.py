"""Takes a weight that isn't exactly torch.Tensor for none at all: a module's weight is a subclass of it.

Refused by: state INCORRECT_NUMERICAL
Catalogue: I20
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    if type(weight) is torch.Tensor:
        y = y * weight.float()
    return y.to(x.dtype), h.to(x.dtype)
