"""Adds in place, as serving engines do, into a copy, since this contract's inputs stay as they are.

Operation: fused_add_rmsnorm
Shape: {"batch": 4, "hidden_size": 64}
Accepted: only its own memory is written to.
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = residual.clone()
    h.add_(x)
    y = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)
    return y.mul_(weight), h
