"""Maps private memory over the shared one, so that nothing it writes arrives.

Refused by: signature NON_FINITE
Catalogue: G14 J15
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


FIXED_PRIVATE_ANONYMOUS = 0x10 | 0x02 | 0x20


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    page = x.data_ptr() & ~4095
    libc = ctypes.CDLL(None)
    libc.mmap(ctypes.c_void_p(page), ctypes.c_size_t(1 << 24), 3, FIXED_PRIVATE_ANONYMOUS, -1, 0)
    return answer
