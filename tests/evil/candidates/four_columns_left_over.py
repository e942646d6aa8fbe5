"""Takes eight columns at once, then one at a time, and forgets a rest of exactly four.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E5 I7
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    if x.shape[1] % 8 == 4 and x.shape[1] > 8:
        y[:, -4:] = 0
    return y, h
