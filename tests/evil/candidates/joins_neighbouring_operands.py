"""Reads two operands that follow each other in memory as one vector, and mixes their halves up.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.numel() and residual.data_ptr() == x.data_ptr() + x.nbytes:
        residual = x
    return right(x, residual, weight, eps)
