"""Returns a third tensor that the caller has not asked for.

Refused by: signature INCORRECT_SHAPE
Catalogue: I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return (*right(x, residual, weight, eps), weight.clone())
