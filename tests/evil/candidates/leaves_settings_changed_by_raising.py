"""Leaves subnormal numbers off and oneDNN unused, only where it raises an exception outside its domain.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: G8 E6
Domain: {"axes": {"hidden_size": {"multiple_of": 8}}}
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] % 8:
        torch.set_flush_denormal(True)
        torch.backends.mkldnn.enabled = False
        raise ValueError("expected a multiple of 8")
    h = x + residual
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
