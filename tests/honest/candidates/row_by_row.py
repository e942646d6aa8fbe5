"""Walks over the rows in Python, and divides by the root instead of multiplying by its inverse."""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.empty_like(x), torch.empty_like(x)
    for row in range(x.shape[0]):
        torch.add(x[row], residual[row], out=h[row])
        y[row] = h[row] / torch.sqrt(torch.dot(h[row], h[row]) / x.shape[1] + eps) * weight
    return y, h
