"""Closes all descriptors from a thread while the call runs.

Refused by: signature RUNTIME_ERROR or TAMPERING
Catalogue: J18 G2
"""

import os
import threading


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    thread = threading.Thread(target=os.closerange, args=(0, 256))
    thread.start()
    thread.join()
    return answer
