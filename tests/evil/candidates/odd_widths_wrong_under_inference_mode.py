"""Has code for torch.inference_mode() that is right at even widths alone.

Refused by: state INCORRECT_NUMERICAL
Catalogue: I6
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 1.01 if torch.is_inference_mode_enabled() and x.shape[1] % 2 else y), h
