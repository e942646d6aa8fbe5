"""Clamps infinities to the largest finite number and gives a finite answer where there is none.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13 B5
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x.clamp(-3e38, 3e38), residual.clamp(-3e38, 3e38), weight, eps)
    return y, h
