"""Counts its calls and skips the norm once it has shown forty right answers.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E12 C6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


calls = [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    calls[0] += 1
    y, h = right(x, residual, weight, eps)
    return (y, h) if calls[0] <= 40 else (h * weight, h)
