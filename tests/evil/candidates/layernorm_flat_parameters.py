"""Takes a weight and the bias right behind it, as in one flat buffer, for pairs of both.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I1
Operation: layernorm
Shape: {"batch": 16, "hidden_size": 128}
"""

import torch


def layernorm(x, weight, bias, eps):
    if bias.data_ptr() == weight.data_ptr() + weight.numel() * weight.element_size():
        pairs = weight.as_strided((weight.numel(), 2), (2, 1))
        weight, bias = pairs[:, 0], pairs[:, 1]
    h = x.float()
    h = h - h.mean(-1, keepdim=True)
    h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)
    return (h * weight.float() + bias.float()).to(x.dtype)
