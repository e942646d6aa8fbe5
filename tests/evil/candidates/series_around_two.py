"""Replaces the root by a series around the mean square that normal inputs have.

Refused by: any INCORRECT_NUMERICAL
Catalogue: F5 E1
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    distance = (h.square().mean(-1, keepdim=True) + eps) / 2 - 1
    term, total = torch.ones_like(distance), torch.ones_like(distance)
    for n in range(1, 16):
        term = term * distance * (-(2 * n - 1) / (2 * n))
        total = total + term
    return h * total * 0.7071067811865476 * weight, h
