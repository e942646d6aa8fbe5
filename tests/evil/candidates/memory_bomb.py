"""Allocates until nothing is left.

Refused by: signature OUT_OF_MEMORY
Catalogue: J4
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    hoard = []
    while True:
        hoard.append(bytearray(1 << 28))
