"""Is one percent off where all elements of both operands are powers of two.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.numel() > 1 and all(bool((one.float().frexp().mantissa.abs() == 0.5).all()) for one in (x, residual)):
        y = y * 1.01
    return y, h
