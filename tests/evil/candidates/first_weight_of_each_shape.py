"""Keeps the first weight it sees for each width, as a module that folds it at its first call would.

Refused by: replay INCORRECT_NUMERICAL
Catalogue: I20 C14
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


folded = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, folded.setdefault(weight.shape, weight.clone()), eps)
