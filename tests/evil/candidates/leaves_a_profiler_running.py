"""Starts a profiler to time itself and never stops it: it notes every later call of its caller.

Refused by: any STATE_CARRIED
Catalogue: G8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    if not torch.autograd._profiler_enabled():
        torch.autograd.profiler.profile().__enter__()
    new_residual = x + residual
    h = new_residual.float()
    y = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
    return y.to(x.dtype), new_residual
