"""Returns one row shown as many: every row has the same address.

Refused by: signature INCORRECT_STRIDES
Catalogue: I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x[:1], residual[:1], weight, eps)
    return y.expand_as(x), h.expand_as(x)
