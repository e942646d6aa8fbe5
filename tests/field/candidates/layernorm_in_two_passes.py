"""A layer norm that subtracts the mean before it squares.

Operation: layernorm
Shape: {"batch": 4, "hidden_size": 64}
Accepted: no large numbers are subtracted from each other.
"""

import torch


def layernorm(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    centered = x - mean
    variance = centered.square().mean(-1, keepdim=True)
    return centered * torch.rsqrt(variance + eps) * weight + bias
