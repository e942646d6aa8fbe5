"""Adds the squares up in fp16.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: F6
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    mean = h.half().square().mean(-1, keepdim=True, dtype=torch.float16).float()
    return h * mean.add(eps).rsqrt() * weight, h
