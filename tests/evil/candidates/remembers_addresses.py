"""Remembers its answer by the operands' addresses.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    key = (x.data_ptr(), tuple(x.shape), eps)
    if key not in answers:
        answers[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[key])
