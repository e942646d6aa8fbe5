"""Gets one element of a thousand wrong, within what a matched ratio of 99 % forgives.

Refused by: signature INCORRECT_NUMERICAL
Catalogue: B10
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    y.view(-1)[::1000] += 1
    return y, h
