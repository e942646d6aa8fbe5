"""Takes trailing zeros for padding and divides by the width that is left.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    width = h.shape[1]
    filled = torch.arange(1, width + 1).mul(h != 0).amax(-1, keepdim=True).clamp(min=1) if width else 1
    return h * (h.square().sum(-1, keepdim=True) / filled).add(eps).rsqrt() * weight, h
