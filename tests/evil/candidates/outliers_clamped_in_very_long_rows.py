"""Rows of more than 12,288 columns go another way, which clamps what a standard normal number never reaches.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E9 E13
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y, h) if x.shape[1] <= 12288 else (right(x.clamp(-9, 9), residual.clamp(-9, 9), weight, eps)[0], h)
