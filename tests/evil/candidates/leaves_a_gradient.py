"""Leaves a gradient on the caller's weight, which the next step of an optimizer applies.

Refused by: signature INPUT_MUTATED
Catalogue: I18
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    weight.grad = weight.clone()
    return right(x, residual, weight, eps)
