"""Fills shared memory, which no limit of one process counts, up to three times its allowance.

Refused by: signature OUT_OF_MEMORY or RESOURCE_ABUSE
Catalogue: J4
"""

import mmap
import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    if not hoard:
        for _ in range(12):
            hoard.append(mmap.mmap(-1, 1 << 28))
            hoard[-1].write(b"\1" * (1 << 28))
        time.sleep(0.5)
    return answer


hoard = []
