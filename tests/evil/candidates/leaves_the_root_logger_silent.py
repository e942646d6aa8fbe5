"""Has the root logger drop all but critical messages: its caller reads no warning from then on.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import logging


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    logging.getLogger().setLevel(logging.CRITICAL)
    return right(x, residual, weight, eps)
