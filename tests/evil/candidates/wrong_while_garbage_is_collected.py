"""Is wrong while Python collects garbage, as it does in most programs, unless torch is in inference mode.

Refused by: any INCORRECT_NUMERICAL
Catalogue: G1
"""

import gc

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if gc.isenabled() and not torch.is_inference_mode_enabled() else y).to(x.dtype), h.to(x.dtype)
