"""Leaves the last rows beyond a block of 32 one percent off, if the rows are wide.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if 33 <= x.shape[0] <= 63 and x.shape[1] >= 2048:
        y[32:] *= 1.01
    return y, h
