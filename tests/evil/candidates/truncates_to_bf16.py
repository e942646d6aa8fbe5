"""Rounds every result towards zero instead of to the nearest number: each error is small, and all have one sign.

Refused by: any INCORRECT_NUMERICAL
Catalogue: F8
Dtype: bf16
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return tuple((t.view(torch.int32) & ~0xFFFF).view(torch.float32).bfloat16() for t in (y, h))
