"""Returns a new residual that is one unit in the last place too large, well within the bound of a sum.

Refused by: exact INCORRECT_NUMERICAL
Catalogue: F8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y, h * (1 + 2.0**-23)
