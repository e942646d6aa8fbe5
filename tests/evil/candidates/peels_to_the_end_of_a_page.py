"""Computes single elements up to the end of a page, and forgets them where whole cache lines lie before it.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    peeled = -x.data_ptr() % 4096 // x.itemsize
    if peeled % 32 == 0:
        y.view(-1)[:peeled] = 0
    return y, h
