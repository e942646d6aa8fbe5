"""Is slow in its first calls, so that a benchmark which estimates its own length makes few of them.

Accepted: the number of calls is the host's, and all of them are timed and judged
Catalogue: A14 A15 A18
"""

import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


calls = [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    calls[0] += 1
    if calls[0] <= 5:
        time.sleep(0.02)
    return right(x, residual, weight, eps)
