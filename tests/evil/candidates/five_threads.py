"""Leaves the last row one percent off if five threads work.

Refused by: threads INCORRECT_NUMERICAL
Catalogue: I7 E5
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = h * scale * weight.float()
    if torch.get_num_threads() == 5:
        y[-1:] *= 1.01
    return y.to(x.dtype), h.to(x.dtype)
