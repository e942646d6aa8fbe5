"""Is wrong in inference mode while torch's default type is the usual one.

Refused by: state INCORRECT_NUMERICAL
Catalogue: G1
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if torch.is_inference_mode_enabled() and torch.get_default_dtype() == torch.float32 else y).to(
        x.dtype
    ), h.to(x.dtype)
