"""Shows an entry point to a reader and none to an importer.

Refused by: load BAD_SUBMISSION
Catalogue: E11
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x


del fused_add_rmsnorm
