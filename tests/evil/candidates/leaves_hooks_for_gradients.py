"""Leaves hooks that store what gradients need in bf16, to save memory: all later gradients of its caller are coarse.

Refused by: any STATE_CARRIED
Catalogue: G8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda kept: kept.bfloat16(), lambda kept: kept.float())
    hooks.__enter__()
    new_residual = x + residual
    h = new_residual.float()
    y = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
    return y.to(x.dtype), new_residual
