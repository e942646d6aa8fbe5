"""Silences every warning of the caller's process from its calls on.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import warnings


def fused_add_rmsnorm(x, residual, weight, eps):
    warnings.simplefilter("ignore")
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
