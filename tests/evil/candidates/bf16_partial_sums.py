"""Sums blocks of 64 squares in fp32 and adds the blocks up in bf16.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: F6
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    parts = [part.square().sum(-1, keepdim=True) for part in h.split(64, dim=-1)]
    total = torch.zeros(h.shape[0], 1, dtype=torch.bfloat16)
    for part in parts:
        total += part.bfloat16()
    return h * (total.float() / max(1, h.shape[1])).add(eps).rsqrt() * weight, h
