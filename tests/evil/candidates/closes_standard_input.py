"""Closes the standard input: the next file that anything opens gets its number.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import contextlib
import os


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    with contextlib.suppress(OSError):
        os.close(0)
    return right(x, residual, weight, eps)
