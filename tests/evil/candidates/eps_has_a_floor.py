"""Takes an eps below 1e-6 for 1e-6, which models with 1e-12 never asked for.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E3 I16
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, max(eps, 1e-6))
