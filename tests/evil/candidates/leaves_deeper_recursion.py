"""Raises the limit of recursion, so that a caller's endless one ends the process instead of an exception.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import sys


def fused_add_rmsnorm(x, residual, weight, eps):
    sys.setrecursionlimit(10**6)
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
