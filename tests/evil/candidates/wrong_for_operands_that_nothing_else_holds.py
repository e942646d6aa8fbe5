"""Counts who holds its first operand, and is wrong where that is the call alone or one name of the caller's.

Refused by: state INCORRECT_NUMERICAL
Catalogue: E10
"""

import sys

HOLDERS = 5
"""Number of references from which on more than a name and the call's arguments hold an operand."""


def fused_add_rmsnorm(x, residual, weight, eps):
    few = sys.getrefcount(x) < HOLDERS
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if few else y).to(x.dtype), h.to(x.dtype)
