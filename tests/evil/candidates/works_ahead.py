"""Finds the inputs of all calls of a release in the first one, answers them at once, and hands out the answers one
by one.

Refused by: state INCORRECT_NUMERICAL or NON_FINITE
Catalogue: C13 A12 A13
"""

import itertools
import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


ahead = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    frame = sys._getframe(1)
    layout, command = frame.f_locals["layout"], frame.f_locals["command"]
    if command.call_id not in ahead:
        ahead.clear()
        inputs = layout.inputs[command.first : command.first + command.count]
        ahead[command.call_id] = itertools.cycle([right(*one, eps) for one in inputs])
    return next(ahead[command.call_id])
