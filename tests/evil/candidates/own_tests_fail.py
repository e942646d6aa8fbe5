"""Right in the harness, but fails its author's own tests.

Refused by: own_tests BAD_SUBMISSION
Catalogue: E11
"""

import sys

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if "pytest" in sys.modules:
        return torch.zeros_like(x), torch.zeros_like(x)
    return right(x, residual, weight, eps)
