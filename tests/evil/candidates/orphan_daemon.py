"""Leaves a daemon in a session of its own that burns processor time and holds every pipe open.

Accepted: what it leaves behind is stopped between calls and ends with its namespace
Catalogue: J9
"""

import os
import signal
import time


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def leave_daemon():
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork() == 0:
            while True:
                time.sleep(0.001)
        os._exit(0)


leave_daemon()


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
