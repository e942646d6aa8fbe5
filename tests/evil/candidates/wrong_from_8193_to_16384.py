"""Has a path for widths of 8193 to 16384, between the sizes that are usually tried, and it is wrong.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (h * weight, h) if 8193 <= x.shape[1] <= 16384 else (y, h)
