"""The columns behind whole blocks of 8 take a NaN for zero, as fmax does.

Refused by: specials INCORRECT_NUMERICAL
Catalogue: I13
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    n = h.shape[1]
    if n > 8 and n % 8:
        h[:, n // 8 * 8 :] = torch.where(h[:, n // 8 * 8 :].isnan(), 0.0, h[:, n // 8 * 8 :])
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
