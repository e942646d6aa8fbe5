"""Takes NaN for zero.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x.nan_to_num(), residual.nan_to_num(), weight, eps)
