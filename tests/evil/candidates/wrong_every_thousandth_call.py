"""Answers each thousandth call with zeros.

Refused by: any INCORRECT_NUMERICAL or STATE_CARRIED
Catalogue: C6 I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


calls = [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    calls[0] += 1
    y, h = right(x, residual, weight, eps)
    return (y, h) if calls[0] % 1000 else (y * 0, h)
