"""Has a path of its own for numbers of rows that tiles of 128 divide, and that one leaves the last tile out.

Refused by: aliasing INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[0] and x.shape[0] % 128 == 0:
        y[-128:] = 0
    return y, h
