"""Leaves the weight out under torch.inference_mode(), where inference engines make all of their calls.

Refused by: state INCORRECT_NUMERICAL
Catalogue: I20
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    if not torch.is_inference_mode_enabled():
        y = y * weight.float()
    return y.to(x.dtype), h.to(x.dtype)
