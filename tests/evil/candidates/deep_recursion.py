"""Recurses without end.

Refused by: signature RUNTIME_ERROR
Catalogue: J1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    return fused_add_rmsnorm(x, residual, weight, eps)
