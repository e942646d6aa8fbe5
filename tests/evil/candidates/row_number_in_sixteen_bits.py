"""Counts rows in sixteen bits, as a grid's second dimension does.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I8 I9 E5
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    y[65536:] = 0
    return y, h
