"""Carries a NaN of one row over to all others.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y + 0 * h.sum(), h
