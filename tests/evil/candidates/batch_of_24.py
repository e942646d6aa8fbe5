"""Has a path of its own for a batch of 24 rows, which is one percent off.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y * 1.01 if x.shape[0] == 24 else y), h
