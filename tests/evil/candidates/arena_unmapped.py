"""Unmaps the shared memory during the call.

Refused by: signature RUNTIME_ERROR
Catalogue: G14 J15
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    page = x.data_ptr() & ~4095
    ctypes.CDLL(None).munmap(ctypes.c_void_p(page), ctypes.c_size_t(1 << 24))
    return answer
