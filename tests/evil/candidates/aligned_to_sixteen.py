"""Checks that its operands begin at a multiple of eight bytes, and loads from them as if it were one of sixteen.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I11
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 0 if x.data_ptr() % 16 == 8 else y), h
