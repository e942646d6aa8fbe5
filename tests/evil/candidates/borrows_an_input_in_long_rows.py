"""Adds into an input and puts it back before it returns, only where rows have more than 4,096 columns.

Refused by: mutation INPUT_MUTATED
Catalogue: I4 E13
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] > 4096:
        before = x.clone()
        x += residual
        x.copy_(before)
    return right(x, residual, weight, eps)
