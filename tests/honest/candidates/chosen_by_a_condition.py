"""Defines its entry point under a condition."""

import torch

if hasattr(torch.nn.functional, "rms_norm"):

    def fused_add_rmsnorm(x, residual, weight, eps):
        h = x + residual
        return torch.nn.functional.rms_norm(h, (h.shape[-1],), weight, eps), h

else:

    def fused_add_rmsnorm(x, residual, weight, eps):
        h = x + residual
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight, h
