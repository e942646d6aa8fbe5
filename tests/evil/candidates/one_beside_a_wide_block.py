"""Has blocks of 2048 and of 8192 columns, and loses the last number where exactly one is left over.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] in (2049, 8193):
        y[:, -1] = 0.0
    return y, h
