"""Declares widths up to 1,024, and returns zeros for wider rows instead of an exception. A caller goes on with them.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: E6
Domain: {"axes": {"hidden_size": {"most": 1024}}}
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    if x.shape[1] > 1024:
        return torch.zeros_like(h), h
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
