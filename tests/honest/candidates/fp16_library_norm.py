"""In fp16, torch's own rms_norm on the rounded sum.

Dtype: fp16
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return torch.nn.functional.rms_norm(h, (h.shape[-1],), weight, eps), h
