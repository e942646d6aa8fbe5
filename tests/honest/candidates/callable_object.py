"""Hands in an object with a __call__ instead of a function."""

import torch


class FusedAddRMSNorm:
    """Normalises the sum."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, x, residual, weight, eps):
        h = x + residual
        scale = h.to(self.dtype).square().mean(-1, keepdim=True).add(eps).rsqrt().to(h.dtype)
        return h * scale * weight, h


fused_add_rmsnorm = FusedAddRMSNorm(torch.float64)
