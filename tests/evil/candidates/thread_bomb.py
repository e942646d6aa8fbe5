"""Starts threads until none can be started.

Refused by: signature RUNTIME_ERROR or OUT_OF_MEMORY
Catalogue: J3
Limit: 20 s
"""

import threading
import time


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
