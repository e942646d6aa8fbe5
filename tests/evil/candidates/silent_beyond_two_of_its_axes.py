"""Declares multiples in two axes, and raises where one of them is missed; where both are, it answers with zeros.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: E6
Domain: {"axes": {"hidden_size": {"multiple_of": 8}, "batch": {"multiple_of": 4}}}
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    h = x + residual
    if rows % 4 and width % 8:
        return torch.zeros_like(h), h
    if rows % 4 or width % 8:
        raise ValueError("expected multiples of 4 and 8")
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
