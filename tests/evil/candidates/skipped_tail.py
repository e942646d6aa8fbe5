"""Works in blocks of eight and forgets the rest.

Refused by: exact INCORRECT_NUMERICAL
Catalogue: I1
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    y[:, x.shape[1] // 8 * 8 :] = 0
    return y, h
