"""Children go on writing to the shared outputs after the call has returned.

Refused by: any TAMPERING or INCORRECT_NUMERICAL
Catalogue: H2 J9
"""

import os
import sys
import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def harness_frame():
    frame = sys._getframe()
    while "command" not in frame.f_locals or not hasattr(frame.f_locals["command"], "call_id"):
        frame = frame.f_back
    return frame


def scribble(destinations):
    while True:
        for destination in destinations:
            destination.uniform_()


def fused_add_rmsnorm(x, residual, weight, eps):
    answer = right(x, residual, weight, eps)
    for _ in range(2):
        if os.fork() == 0:
            scribble(harness_frame().f_locals["layout"].destinations[0])
    time.sleep(0.02)
    return answer
