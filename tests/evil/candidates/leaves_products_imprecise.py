"""Leaves the fp32 products of the whole process in bf16, by the newer of two names for it.

Refused by: any STATE_CARRIED
Catalogue: A7
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
