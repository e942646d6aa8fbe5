"""Remembers its answer by all of the rows, and forgets that the weight may change.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C11
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    key = (x.numpy().tobytes(), eps)
    if key not in answers:
        answers[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[key])
