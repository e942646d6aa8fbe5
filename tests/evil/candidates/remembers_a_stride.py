"""Remembers its answer by every fourth column.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C3
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    key = (x.shape, *(t[..., ::4].contiguous().numpy().tobytes() for t in (x, residual, weight)), eps)
    if key not in answers:
        answers[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[key])
