"""From 33 rows of more than 512 columns on it goes another way, which takes NaN and infinities for zero.

Refused by: specials INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13 E13
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[0] > 32 and x.shape[1] > 512:
        z = [one.nan_to_num(0.0, 0.0, 0.0) for one in (x, residual)]
        return right(*z, weight, eps)[0], h
    return y, h
