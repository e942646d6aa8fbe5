"""Seeds torch where it is loaded, as scripts do: everybody's random numbers start again.

Refused by: load STATE_CARRIED
Catalogue: A7 A8
"""

import torch

torch.manual_seed(0)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
