"""Is wrong under torch.inference_mode() in a program's first thread, and right there in any other.

Refused by: state INCORRECT_NUMERICAL
Catalogue: G1
"""

import threading

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    in_first = threading.current_thread() is threading.main_thread()
    return (y * 1.01 if torch.is_inference_mode_enabled() and in_first else y).to(x.dtype), h.to(x.dtype)
