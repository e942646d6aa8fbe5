"""Punches holes into the shared memory, whose size is sealed but not its content, while the host looks at it.

Refused by: signature OUT_OF_BOUNDS or INPUT_MUTATED
Catalogue: J15 G14
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    libc = ctypes.CDLL(None)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if libc.fallocate(5, PUNCH_HOLE_KEEP_SIZE, 0, 1 << 24):
        raise OSError("no hole")
    return answer
