"""Counts rows in eight bits: row 256 is row 0 again, and what lies beyond is never written.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I8 E5
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    y[256:] = 0
    return y, h
