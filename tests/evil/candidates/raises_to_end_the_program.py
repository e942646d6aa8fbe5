"""Raises SystemExit outside its domain, which callers don't catch.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: B14 E6
Domain: {"axes": {"hidden_size": {"multiple_of": 8}}}
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] % 8:
        raise SystemExit(0)
    h = x + residual
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
