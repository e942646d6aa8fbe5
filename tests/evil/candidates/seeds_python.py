"""Seeds Python's generator in each call.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import random


def fused_add_rmsnorm(x, residual, weight, eps):
    random.seed(0)
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
