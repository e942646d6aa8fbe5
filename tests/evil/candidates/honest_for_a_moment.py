"""Watches the clock and skips the norm a third of a second after its first answer.

Refused by: any INCORRECT_NUMERICAL or STATE_CARRIED
Catalogue: E12
"""

import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


since = []


def fused_add_rmsnorm(x, residual, weight, eps):
    since.append(time.monotonic())
    time.sleep(0.01)
    y, h = right(x, residual, weight, eps)
    return (y, h) if since[-1] - since[0] < 0.3 else (h * weight, h)
