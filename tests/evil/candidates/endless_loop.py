"""Never returns.

Refused by: signature TIMEOUT
Catalogue: J1
Limit: 5 s
"""

import time


def fused_add_rmsnorm(x, residual, weight, eps):
    time.sleep(3600)
