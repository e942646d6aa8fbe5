"""Builds a shared object larger than what is taken.

Refused by: build COMPILE_ERROR
Catalogue: J8
Language: cpp
"""

CPP_SOURCE = r"""
extern "C" char filler[160 << 20] = {1};
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x
