"""Is wrong in any thread but the first one, unless that is in inference mode.

Refused by: state INCORRECT_NUMERICAL
Catalogue: G1
"""

import threading

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    elsewhere = threading.current_thread() is not threading.main_thread()
    return (y * 1.01 if not torch.is_inference_mode_enabled() and elsewhere else y).to(x.dtype), h.to(x.dtype)
