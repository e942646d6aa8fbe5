"""Sums over the rows instead of along them.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: B17
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return h * h.square().mean(0, keepdim=True).add(eps).rsqrt() * weight, h
