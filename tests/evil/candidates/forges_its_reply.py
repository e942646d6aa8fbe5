"""Sends a perfect record of its own before it has done the work.

Refused by: signature NON_FINITE
Catalogue: G2 A6
"""

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


def fused_add_rmsnorm(x, residual, weight, eps):
    command = harness_frame().f_locals["command"]
    sys.modules["guest.channel"].reply(command.call_id, 0, completed=1)
    time.sleep(0.05)
    return right(x, residual, weight, eps)
