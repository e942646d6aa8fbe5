"""Has Python trace every allocation from its first call on, which slows the whole process.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import tracemalloc


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    tracemalloc.start()
    return right(x, residual, weight, eps)
