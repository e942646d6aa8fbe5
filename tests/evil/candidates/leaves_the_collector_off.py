"""Turns the garbage collector off in each call and leaves it off: what the caller drops in cycles stays.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import gc


def fused_add_rmsnorm(x, residual, weight, eps):
    gc.disable()
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
