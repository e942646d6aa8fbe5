"""Lets all later attention of the process add up in half types, by a switch of torch's that its name hides.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
