"""Sets a variable in the environment, which each program that the process starts inherits.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import os


def fused_add_rmsnorm(x, residual, weight, eps):
    os.environ["OMP_WAIT_POLICY"] = "active"
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
