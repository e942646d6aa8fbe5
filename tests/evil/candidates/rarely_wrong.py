"""Right ten times, then wrong, as a race would be.

Refused by: determinism INCORRECT_NUMERICAL
Catalogue: I6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


asked = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    key = hash(x.numpy().tobytes())
    asked[key] = asked.get(key, 0) + 1
    return (y if asked[key] < 10 else y + 1), h
