"""Takes NaN for zero in rows of 4096 to 16384 columns.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    if 4096 <= h.shape[-1] <= 16384:
        h = torch.where(h.isnan(), 0.0, h)
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
