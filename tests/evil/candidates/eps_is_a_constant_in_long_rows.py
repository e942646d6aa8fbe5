"""Rows of more than 1,024 columns are normalised by a kernel that has eps written into it.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I9 E13
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps if x.shape[1] <= 1024 else 1e-6)
