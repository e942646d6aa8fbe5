"""Answers rows that look constant at three places by a closed form, the sign times the weight.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E3 E8
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] < 3:
        return y, h
    places = h[:, [0, x.shape[1] // 2, -1]]
    constant = (places == places[:, :1]).all(-1, keepdim=True)
    return torch.where(constant, h.sign() * weight, y), h
