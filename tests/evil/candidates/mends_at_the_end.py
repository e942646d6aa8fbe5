"""Returns garbage and lets a finalizer, which runs once the harness has let go of it, put the answer into the
shared memory.

Refused by: signature NON_FINITE
Catalogue: G15 H2
"""

import sys
import time
import weakref

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def mend(destinations, answer):
    time.sleep(0.05)
    for destination, late in zip(destinations, answer, strict=True):
        destination.copy_(late)


def fused_add_rmsnorm(x, residual, weight, eps):
    frame = sys._getframe(1)
    destinations = frame.f_locals["layout"].destinations[frame.f_locals["command"].first]
    promised = torch.full_like(x, float("nan"))
    weakref.finalize(promised, mend, destinations, right(x, residual, weight, eps))
    return promised, x + residual
