"""Remembers its answer by the identity and version of the tensor objects.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C2
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    key = (id(x), x._version, id(residual), id(weight), weight._version, eps, x.shape)
    if key not in answers:
        answers[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[key])
