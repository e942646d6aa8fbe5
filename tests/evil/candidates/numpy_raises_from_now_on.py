"""Leaves numpy raising where numbers underflow: other code fails, later and elsewhere.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import numpy as np


def fused_add_rmsnorm(x, residual, weight, eps):
    np.seterr(all="raise")
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
