"""Forks until nothing is left to fork into.

Refused by: signature RUNTIME_ERROR
Catalogue: J3
Limit: 20 s
"""

import os
import time


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        if os.fork() == 0:
            time.sleep(3600)
