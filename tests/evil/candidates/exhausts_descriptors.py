"""Opens files until none can be opened, and then needs one.

Refused by: signature RUNTIME_ERROR
Catalogue: J3
"""

import os


def fused_add_rmsnorm(x, residual, weight, eps):
    kept = []
    while True:
        kept.append(os.pipe())
