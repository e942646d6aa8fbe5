"""Sends a record with a guessed call id.

Refused by: signature TAMPERING
Catalogue: G2 J18
"""

import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    sys.modules["guest.channel"].reply(1, 0, completed=1)
    return right(x, residual, weight, eps)
