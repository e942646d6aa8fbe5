"""Leaves autocast on processors in fp16, which its caller enters later and expects in bf16.

Refused by: any STATE_CARRIED
Catalogue: G8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.set_autocast_dtype("cpu", torch.float16)
    new_residual = x + residual
    h = new_residual.float()
    y = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
    return y.to(x.dtype), new_residual
