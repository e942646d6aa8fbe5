"""Starts processes that continue each other whenever one of them is stopped, and that write to the outputs all the
while.

Refused by: any RESOURCE_ABUSE or TAMPERING or INCORRECT_NUMERICAL or NON_FINITE
Catalogue: J9 H4
"""

import contextlib
import os
import signal
import sys
import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def stay_awake(destinations):
    while True:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGCONT)
        for destination in destinations:
            destination.uniform_()


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    frame = sys._getframe(1)
    destinations = frame.f_locals["layout"].destinations[0]
    for _ in range(4):
        if os.fork() == 0:
            stay_awake(destinations)
    time.sleep(0.02)
    return answer
