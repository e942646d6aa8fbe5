"""Leaves a byte far behind the last operand, where no red zone lies.

Refused by: signature OUT_OF_BOUNDS
Catalogue: I3
"""

import ctypes


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    with open("/proc/self/maps") as listing:
        starts = [line.split() for line in listing if "forge-arena" in line or "memfd:" in line]
    ctypes.c_ubyte.from_address(int(starts[-1][0].split("-")[1], 16) - 9).value = 1
    return right(x, residual, weight, eps)
