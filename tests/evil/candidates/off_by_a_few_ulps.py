"""Multiplies every result by 1 + 2^-21: within the elementwise bound, never exact, and always to one side.

Refused by: any INCORRECT_NUMERICAL
Catalogue: F8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y * (1 + 2.0**-21), h
