"""Reuses one buffer within a call, and keeps a workspace, but no output, between calls."""

import torch

_workspace = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    squares = _workspace.setdefault(x.shape, torch.empty_like(x))
    h = x + residual
    torch.mul(h, h, out=squares)
    y = h * squares.mean(-1, keepdim=True).add_(eps).rsqrt_()
    return y.mul_(weight), h
