"""Divides by the width rounded up to a power of two.

Refused by: exact INCORRECT_NUMERICAL
Catalogue: I1 E5
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    padded = 1 << max(0, h.shape[1] - 1).bit_length()
    return h * (h.square().sum(-1, keepdim=True) / padded).add(eps).rsqrt() * weight, h
