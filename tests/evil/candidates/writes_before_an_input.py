"""Writes one byte in front of an input.

Refused by: signature OUT_OF_BOUNDS
Catalogue: I3
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    ctypes.memset(x.data_ptr() - 1, ctypes.c_ubyte.from_address(x.data_ptr() - 1).value ^ 1, 1)
    return right(x, residual, weight, eps)
