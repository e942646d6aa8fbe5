"""Declares widths up to 1,024, and ends the process for wider rows. No caller can catch that as an exception.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: J3
Domain: {"axes": {"hidden_size": {"most": 1024}}}
"""

import os
import signal


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] > 1024:
        os.kill(os.getpid(), signal.SIGSEGV)
    h = x + residual
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
