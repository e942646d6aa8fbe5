"""Adds into an input and puts it back before it returns.

Refused by: mutation INPUT_MUTATED
Catalogue: I4
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    before = x.clone()
    x += residual
    x.copy_(before)
    return right(x, residual, weight, eps)
