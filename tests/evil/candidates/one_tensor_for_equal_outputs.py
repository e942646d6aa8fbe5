"""Gives one tensor for both outputs where they are equal: a caller who adds to the residual in place changes y.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y, new_residual = (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
    return (new_residual, new_residual) if torch.equal(y, new_residual) else (y, new_residual)
