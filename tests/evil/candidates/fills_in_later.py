"""Says it is done and lets a thread write the outputs afterwards.

Refused by: signature NON_FINITE
Catalogue: H3
"""

import threading
import time

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.full_like(x, float("nan")), torch.full_like(x, float("nan"))

    def fill():
        time.sleep(0.02)
        for promised, late in zip((y, h), right(x, residual, weight, eps), strict=True):
            promised.copy_(late)

    threading.Thread(target=fill).start()
    return y, h
