"""Writes a record before it was asked anything.

Refused by: load TAMPERING
Catalogue: G2 J18
"""

import os

os.write(4, b"RPLY".ljust(580, b"\0"))


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x
