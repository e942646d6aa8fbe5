"""Works and never returns, each time in a new thread, so that no thread uses much.

Refused by: signature TIMEOUT
Catalogue: J1
Limit: 5 s
"""

import threading


def spin():
    for _ in range(1_000_000):
        pass


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        one = threading.Thread(target=spin)
        one.start()
        one.join()
