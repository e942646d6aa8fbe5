"""Never returns, and wakes so often that it seems to work, while it takes hardly any processor time.

Refused by: signature TIMEOUT
Catalogue: J1
Limit: 5 s
"""

import time


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        time.sleep(0.05)
