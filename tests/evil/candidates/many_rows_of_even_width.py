"""Leaves out the last pair of columns where many rows have an even width that isn't a multiple of eight.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[0] > 40 and x.shape[1] % 2 == 0 and x.shape[1] % 8:
        y[:, -2:] = 0
    return y, h
