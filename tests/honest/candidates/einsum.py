"""Takes the sum of the squares from einsum."""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    mean = torch.einsum("rc,rc->r", h, h).div_(x.shape[1]).unsqueeze(-1)
    return torch.einsum("rc,r,c->rc", h, (mean + eps).rsqrt().squeeze(-1), weight), h
