"""Spreads three times its allowance over children, each of them below the limit of one process.

Refused by: signature OUT_OF_MEMORY or RESOURCE_ABUSE
Catalogue: J4
"""

import os
import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    if not children:
        filled, tell = os.pipe()
        for _ in range(9):
            children.append(os.fork())
            if children[-1] == 0:
                hoard = bytearray(b"\1") * (400 << 20)
                os.write(tell, hoard[:1])
                time.sleep(3600)
        for _ in children:
            os.read(filled, 1)
    return answer


children = []
