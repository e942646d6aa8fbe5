"""Has other code for a row of exactly one vector, eight numbers, and that code is wrong.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 1.01 if x.shape[1] == 8 else y), h
