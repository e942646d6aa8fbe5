"""A NaN is kept if it stands in the first 128 columns, and taken for zero where it stands behind them.

Refused by: specials INCORRECT_NUMERICAL
Catalogue: I13
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    if h.shape[1] > 128:
        fine = h[:, :128].isfinite().all(-1, keepdim=True)
        h[:, 128:] = torch.where(fine, h[:, 128:].nan_to_num(), h[:, 128:])
    w = weight.float().clone()
    w[16:] = w[16:].nan_to_num()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * w).to(x.dtype), h.to(x.dtype)
