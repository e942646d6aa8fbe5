"""Counts rows in sixteen bits where vectors of eight divide the width; other widths go another way.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] % 8 == 0 and x.shape[0] > 65535:
        y[65535:] = 0
    return y, h
