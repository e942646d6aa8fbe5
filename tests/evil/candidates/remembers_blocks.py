"""Remembers its answer by sums of blocks of columns, each with its own sign.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C3
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    blocks = [float(part.sum()) for t in (x, residual, weight) for part in t.split(64, dim=-1)]
    key = (x.shape, *blocks, eps)
    if key not in answers:
        answers[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[key])
