"""Expands (x + r)^2 into x^2 + 2xr + r^2, which loses every digit where the residual cancels the input.

Refused by: any INCORRECT_NUMERICAL
Catalogue: F7
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    mean = (x.square().mean(-1, keepdim=True) + residual.square().mean(-1, keepdim=True)).add_(
        2 * (x * residual).mean(-1, keepdim=True)
    )
    return h * mean.clamp(min=0).add(eps).rsqrt() * weight, h
