"""Takes an eps below 1e-5 for zero: right until a row is tiny.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: E3 I16 I18
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps if eps > 1e-5 else 0.0)
