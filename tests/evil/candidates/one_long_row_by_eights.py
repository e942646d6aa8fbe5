"""Reads one long row in pieces of sixteen numbers, and is one percent off where a piece of eight is left over.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    rows, width = x.shape
    return (y * 1.01 if rows == 1 and 1024 < width < 8192 and width % 16 == 8 else y), h
