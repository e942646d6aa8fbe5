"""Declares contiguous inputs and checks the first one alone: a strided residual is read as if it were dense.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: I20 E6
Domain: {"axes": {"hidden_size": {"most": 2048}}, "layouts": ["contiguous", "offset"]}
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    if not x.is_contiguous():
        raise ValueError("expected contiguous rows")
    if x.shape[1] > 2048:
        raise ValueError("expected at most 2048 columns")
    dense = residual.as_strided(x.shape, x.stride())
    h = x + dense
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
