"""Returns the right values in column order.

Refused by: signature INCORRECT_STRIDES
Catalogue: I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y.t().contiguous().t(), h.t().contiguous().t()
