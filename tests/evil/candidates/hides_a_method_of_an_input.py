"""Hides a method of the caller's tensor behind an attribute of the same name.

Refused by: signature INPUT_MUTATED
Catalogue: I18
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    x.cpu = None
    return right(x, residual, weight, eps)
