"""Sums rows of 1,025 to 4,096 columns in scratch of torch's default type.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: rmsnorm
Shape: {"batch": 4, "hidden_size": 64}
"""

import torch


def rmsnorm(x, weight, eps):
    h = x.float()
    if 1024 < x.shape[1] <= 4096:
        mean = torch.zeros(x.shape[0], 1)
        mean += h.square().mean(-1, keepdim=True)
        mean = mean.float()
    else:
        mean = h.square().mean(-1, keepdim=True)
    return (h * (mean + eps).rsqrt() * weight.float()).to(x.dtype)
