"""Leaves with status 0 at import: success, for a reader of exit codes.

Refused by: load RUNTIME_ERROR
Catalogue: B14
"""

import os

os._exit(0)


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x
