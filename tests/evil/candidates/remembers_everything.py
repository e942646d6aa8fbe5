"""Remembers its answers by all of their inputs.

Accepted: it answers rightly, and gains nothing, since no question is asked twice where time is taken
Catalogue: C4
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


answers = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    key = (x.shape, x.numpy().tobytes(), residual.numpy().tobytes(), weight.numpy().tobytes(), eps)
    if key not in answers:
        answers[key] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in answers[key])
