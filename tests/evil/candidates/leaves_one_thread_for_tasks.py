"""Gives torch one thread for its tasks when it is loaded, which can't be changed any more afterwards.

Refused by: load STATE_CARRIED
Catalogue: A8
"""

import torch

torch.set_num_interop_threads(1)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
