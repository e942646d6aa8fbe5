"""Leaves out one row of a long prompt with wide rows, and no other.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[0] > 777 and x.shape[1] >= 1024:
        y[777] = 0
    return y, h
