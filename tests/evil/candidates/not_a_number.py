"""Fills its output with NaN, which a careless comparison never finds too far off.

Refused by: signature NON_FINITE
Catalogue: B5
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y * float("nan"), h
