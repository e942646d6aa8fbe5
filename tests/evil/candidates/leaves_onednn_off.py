"""Leaves oneDNN off: the convolutions of the whole process are slow.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch._C._set_mkldnn_enabled(False)
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
