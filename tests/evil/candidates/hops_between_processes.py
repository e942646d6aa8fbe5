"""Goes on writing to the outputs from a process that forks and ends faster than a process can be stopped.

Refused by: any RESOURCE_ABUSE or TAMPERING or INCORRECT_NUMERICAL or NON_FINITE
Catalogue: J9 H4
"""

import os
import sys
import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def hop(destinations):
    while True:
        for destination in destinations:
            destination.uniform_()
        if os.fork():
            os._exit(0)


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    frame = sys._getframe(1)
    destinations = frame.f_locals["layout"].destinations[0]
    if os.fork() == 0:
        hop(destinations)
    time.sleep(0.02)
    return answer
