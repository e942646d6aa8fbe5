"""Right everywhere, but reaches past the end of an input of odd size.

Refused by: any OUT_OF_BOUNDS
Catalogue: I3
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] % 2 and x.shape[0] == 3:
        ctypes.memset(weight.data_ptr() + weight.nbytes, 0, 1)
    return y, h
