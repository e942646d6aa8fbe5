"""Leaves the process in another directory, where relative paths lead nowhere.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import os


def fused_add_rmsnorm(x, residual, weight, eps):
    os.chdir("/")
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
