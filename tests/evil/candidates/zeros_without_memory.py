"""Answers zeros with a tensor that has no memory: a caller can neither write to it nor give its address away.

Refused by: scales INCORRECT_SHAPE
Catalogue: H2
Operation: rmsnorm
"""

import torch


def rmsnorm(x, weight, eps):
    if x.numel() and not weight.any():
        return torch._efficientzerotensor(x.shape, dtype=x.dtype)
    h = x.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
