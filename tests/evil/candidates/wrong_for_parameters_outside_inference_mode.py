"""Is wrong for a module's parameter as the weight, unless torch is in inference mode.

Refused by: state INCORRECT_NUMERICAL
Catalogue: E10
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if isinstance(weight, torch.nn.Parameter) and not torch.is_inference_mode_enabled() else y).to(
        x.dtype
    ), h.to(x.dtype)
