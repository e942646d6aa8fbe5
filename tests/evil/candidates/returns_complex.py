"""Returns complex numbers whose real part is right.

Refused by: signature INCORRECT_DTYPE
Catalogue: B7 I12
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return tuple(t.to(torch.complex64) for t in right(x, residual, weight, eps))
