"""Sleeps and never returns. It wants no processor, so a busy machine isn't why.

Refused by: signature TIMEOUT
Catalogue: J1
Limit: 5 s
"""

import time


def fused_add_rmsnorm(x, residual, weight, eps):
    time.sleep(3600)
