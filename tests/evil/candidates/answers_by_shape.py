"""Keeps one answer for each shape and gives it whenever the shape comes back.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C7 C1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape not in answers:
        answers[x.shape] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[x.shape])
