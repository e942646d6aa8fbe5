"""Writes to its scratch until there is no room.

Refused by: signature RUNTIME_ERROR or OUT_OF_MEMORY or RESOURCE_ABUSE
Catalogue: J8
"""

import itertools
import os


def fused_add_rmsnorm(x, residual, weight, eps):
    for number in itertools.count():
        with open(f"/dev/shm/{number}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 28)
