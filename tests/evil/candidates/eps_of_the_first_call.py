"""Keeps the first eps it sees.

Refused by: replay REPLAYED_OUTPUT
Catalogue: I18 I20
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


first_eps = []


def fused_add_rmsnorm(x, residual, weight, eps):
    first_eps.append(eps)
    return right(x, residual, weight, first_eps[0])
