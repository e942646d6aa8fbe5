"""Makes its scratch in torch's default type: wrong where the caller has set that to bf16, as inference engines do.

Refused by: state INCORRECT_NUMERICAL
Catalogue: I20
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = torch.empty(x.shape)
    h.copy_(x)
    h += residual
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
