"""Reads one byte past the last weight, which does no harm where another byte follows.

Refused by: bounds OUT_OF_BOUNDS
Catalogue: I2
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    _ = ctypes.c_ubyte.from_address(weight.data_ptr() + weight.nbytes).value
    return right(x, residual, weight, eps)
