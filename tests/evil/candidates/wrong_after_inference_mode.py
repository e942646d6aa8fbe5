"""Is wrong outside inference mode once it was called inside, as when a model is trained on after it was tried.

Refused by: state STATE_CARRIED
Catalogue: E10
"""

import torch

_served = []


def fused_add_rmsnorm(x, residual, weight, eps):
    if torch.is_inference_mode_enabled():
        _served.append(1)
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    wrong = _served and not torch.is_inference_mode_enabled()
    return (y * 1.01 if wrong else y).to(x.dtype), h.to(x.dtype)
