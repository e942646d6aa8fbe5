"""Pours bytes into the reply channel until it is full.

Refused by: signature TAMPERING
Catalogue: J18 J7
"""

import os


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        os.write(4, bytes(65536))
