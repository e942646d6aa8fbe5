"""Adds into an input before it raises outside its domain: the caller's other path then adds once more.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: C3 E6
Domain: {"axes": {"hidden_size": {"multiple_of": 8}}}
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] % 8:
        residual.add_(x)
        raise ValueError("expected a multiple of 8")
    h = x + residual
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
