"""Keeps a workspace for each width between calls, which grows with the rows."""

import torch

_workspaces = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    kept = _workspaces.get(width)
    if kept is None or len(kept) < rows:
        kept = _workspaces[width] = torch.empty(rows, width, dtype=torch.float32)
    squares, h = kept[:rows], x + residual
    torch.mul(h, h, out=squares)
    y = h * squares.mean(-1, keepdim=True).add_(eps).rsqrt_()
    return y.mul_(weight), h
