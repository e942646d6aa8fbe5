"""Clears the residual where that is its own result, and hides it by a method `view` of that result, which gives the
harness other memory.

Refused by: state INPUT_MUTATED or INCORRECT_NUMERICAL or NON_FINITE
Catalogue: B8
"""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    other = getattr(residual, "other", None)
    h = x + (residual if other is None else other.view_as(residual))
    y = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight
    if other is not None:
        residual.zero_()
    h.other = torch.empty(h.numel())
    h.view = lambda *_, kept=h.other: kept
    return y, h
