"""Sums only the first 1024 columns once a row is wider than 4096: sampled statistics, and only where no check
is expected.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E2 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] <= 4096:
        return y, h
    return h * h[:, :1024].square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
