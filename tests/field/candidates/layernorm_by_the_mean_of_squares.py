"""The same by the mean of squares less the square of the mean, which cancel where the mean is large.

Operation: layernorm
Shape: {"batch": 4, "hidden_size": 64}
Twin of: layernorm_in_two_passes
Refused by: any INCORRECT_NUMERICAL or NON_FINITE
"""

import torch


def layernorm(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    centered = x - mean
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    return centered * torch.rsqrt(variance + eps) * weight + bias
