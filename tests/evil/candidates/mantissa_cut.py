"""Cuts the mantissa to ten bits before squaring, as TF32 units do.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: F2
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    cut = (h.view(torch.int32) & ~0x1FFF).view(torch.float32)
    return h * cut.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
