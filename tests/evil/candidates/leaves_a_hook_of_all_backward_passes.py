"""Leaves a hook that torch calls after every module's backward pass in the process.

Refused by: any STATE_CARRIED
Catalogue: G8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    torch.nn.modules.module.register_module_full_backward_hook(lambda *_: None)
    new_residual = x + residual
    h = new_residual.float()
    y = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
    return y.to(x.dtype), new_residual
