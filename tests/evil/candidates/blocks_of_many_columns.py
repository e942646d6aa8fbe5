"""Has a path of its own for widths that blocks of 512 divide, and that one leaves the second block out.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] % 512 == 0:
        y[:, 512:1024] = 0
    return y, h
