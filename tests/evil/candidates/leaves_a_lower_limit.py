"""Lowers the number of files that the process may open.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import resource


def fused_add_rmsnorm(x, residual, weight, eps):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 64), hard))
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
