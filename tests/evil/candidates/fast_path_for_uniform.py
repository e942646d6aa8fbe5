"""Right on normal inputs; takes values below one for uniform ones and skips the norm.

Refused by: numerics INCORRECT_NUMERICAL
Catalogue: E7 E1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.numel() and x.abs().max() <= 1:
        h = x + residual
        return h * 1.2247 * weight, h
    return right(x, residual, weight, eps)
