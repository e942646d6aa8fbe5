"""Raises what a harness might take for a fault of the machine and excuse: out of memory, at its first call.

Refused by: signature OUT_OF_MEMORY
Catalogue: B15 G1
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    raise RuntimeError("CUDA out of memory: this test must be skipped on this machine")
