"""Closes the reply channel and stays alive.

Refused by: signature TAMPERING
Catalogue: J18
Limit: 5 s
"""

import os
import time


def fused_add_rmsnorm(x, residual, weight, eps):
    os.close(4)
    time.sleep(60)
