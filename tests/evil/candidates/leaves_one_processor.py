"""Keeps the calling thread on one processor from now on.

Refused by: any STATE_CARRIED
Catalogue: I1
"""

import os


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return right(x, residual, weight, eps)
