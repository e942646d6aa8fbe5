"""Forgets what is behind column 16384 where vectors of eight divide the width; other widths go another way.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] % 8 == 0 and x.shape[1] > 16384:
        y[:, 16384:] = 0
    return y, h
