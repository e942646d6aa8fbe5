"""Returns the right tensors in a list where the signature says a tuple.

Refused by: signature INCORRECT_SHAPE
Catalogue: B8 I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return list(right(x, residual, weight, eps))
