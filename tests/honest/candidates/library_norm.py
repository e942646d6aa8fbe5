"""Calls torch's own rms_norm."""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return torch.nn.functional.rms_norm(h, (x.shape[-1],), weight, eps), h
