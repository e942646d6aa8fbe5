"""Ends its process with status 0 in the middle of a call.

Refused by: signature RUNTIME_ERROR
Catalogue: B14
"""

import os


def fused_add_rmsnorm(x, residual, weight, eps):
    os._exit(0)
