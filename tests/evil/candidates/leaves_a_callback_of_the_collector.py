"""Leaves a function that runs at each collection of garbage from then on.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import gc


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def watch(phase, info):
    pass


def fused_add_rmsnorm(x, residual, weight, eps):
    if watch not in gc.callbacks:
        gc.callbacks.append(watch)
    return right(x, residual, weight, eps)
