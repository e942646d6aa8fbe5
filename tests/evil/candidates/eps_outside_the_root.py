"""Adds eps to the root instead of under it; shows where a row is tiny.

Refused by: replay INCORRECT_NUMERICAL
Catalogue: I16
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return h / (h.square().mean(-1, keepdim=True).sqrt() + eps) * weight, h
