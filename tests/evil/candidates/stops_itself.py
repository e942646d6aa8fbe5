"""Stops its own process.

Refused by: signature TIMEOUT
Catalogue: J1
Limit: 5 s
"""

import os
import signal


def fused_add_rmsnorm(x, residual, weight, eps):
    os.kill(os.getpid(), signal.SIGSTOP)
