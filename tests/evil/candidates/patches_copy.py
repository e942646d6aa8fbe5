"""Makes copy_ do nothing.

Refused by: signature NON_FINITE
Catalogue: G10
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


torch.Tensor.copy_ = lambda self, _: self


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
