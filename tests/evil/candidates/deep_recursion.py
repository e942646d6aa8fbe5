"""Recurses without end.

Refused by: signature RUNTIME_ERROR
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    return fused_add_rmsnorm(x, residual, weight, eps)
