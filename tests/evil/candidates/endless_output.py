"""Prints without end.

Refused by: signature RESOURCE_ABUSE
Catalogue: J7
Limit: 20 s
"""

import os


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        os.write(2, b"\x1b[2J" * 16384)
