"""C++ that the compiler refuses.

Refused by: build COMPILE_ERROR
Catalogue: D3
Language: cpp
"""

CPP_SOURCE = r"""
int broken( {
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x
