"""Takes an output's memory back once its tensor object is gone, though a caller may have kept a view of it.

Refused by: aliasing STATE_CARRIED
Catalogue: C3 I6
"""

import sys

import torch

POOL = {}


def taken(like):
    """Return a tensor that only the pool holds."""
    pool = POOL.setdefault((tuple(like.shape), like.dtype), [])
    for one in pool:
        if sys.getrefcount(one) == 3:  # the pool, the loop and the question
            return one
    pool.append(torch.empty_like(like))
    return pool[-1]


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = taken(x)
    y.copy_(h * scale * weight.float())
    new_residual = taken(x)
    return y, new_residual.copy_(h)
