"""Leaves eps out: right until a row is tiny, or eps isn't.

Refused by: replay REPLAYED_OUTPUT
Catalogue: I18 I16
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, 0.0)
