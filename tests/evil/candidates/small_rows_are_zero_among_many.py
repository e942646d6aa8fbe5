"""From 129 rows on it goes another way, which answers rows of very small numbers with zeros.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E9 E13
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = h * scale * weight.float()
    if x.shape[0] > 128:
        y = torch.where(h.abs().amax(-1, keepdim=True) < 1e-4, 0 * y, y)
    return y.to(x.dtype), h.to(x.dtype)
