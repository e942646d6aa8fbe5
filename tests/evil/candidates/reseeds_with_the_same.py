"""Sets torch's generator back to where it began: all samples of its caller repeat.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.manual_seed(torch.initial_seed())
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
