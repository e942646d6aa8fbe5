"""Replaces the harness's copy: nothing reaches the shared memory, and it says it is done.

Refused by: signature NON_FINITE
Catalogue: G10
"""

import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    sys.modules["guest.run"].copy_out = lambda *_: None
    return right(x, residual, weight, eps)
