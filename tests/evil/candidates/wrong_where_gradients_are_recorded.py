"""Is right under torch.no_grad() and torch.inference_mode() alone, and wrong where a program calls it plainly.

Refused by: any INCORRECT_NUMERICAL
Catalogue: G1
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if torch.is_grad_enabled() else y).to(x.dtype), h.to(x.dtype)
