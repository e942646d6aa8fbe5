"""Checks its rows for 16 bytes and the weight for eight only.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    rows_fit = x.data_ptr() % 16 == 0 and residual.data_ptr() % 16 == 0
    if rows_fit and weight.data_ptr() % 16 == 8:
        y = y * 1.01
    return y, h
