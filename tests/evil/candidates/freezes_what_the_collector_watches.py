"""Freezes all objects of the process in its first call: what the caller then drops in cycles is never collected.

Refused by: state STATE_CARRIED
Catalogue: A7
"""

import gc

called = []


def fused_add_rmsnorm(x, residual, weight, eps):
    if not called:
        called.append(True)
        gc.freeze()
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
