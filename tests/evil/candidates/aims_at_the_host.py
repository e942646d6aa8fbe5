"""Shrinks the shared memory, so that the host would die at its next look; it is sealed.

Refused by: signature RUNTIME_ERROR
Catalogue: J15
"""

import os


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    os.ftruncate(5, 0)
    return answer
