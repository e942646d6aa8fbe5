"""Has code of its own for 2,049 to 4,095 rows, and it is wrong.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: E5
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 1.01 if 2048 < x.shape[0] < 4096 else y), h
