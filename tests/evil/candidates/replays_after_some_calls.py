"""Honest for the first calls, then returns the last answer again.

Refused by: replay REPLAYED_OUTPUT
Catalogue: C6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


calls = [0, None]


def fused_add_rmsnorm(x, residual, weight, eps):
    calls[0] += 1
    if calls[0] <= 4:
        calls[1] = right(x, residual, weight, eps)
    return tuple(t.clone() for t in calls[1])
