"""Has code of its own for rows of 5120, a width that models have and no drawn size is likely to hit.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] == 5120:
        y[:, -1] = 0
    return y, h
