"""Returns tensors without dimensions, which broadcast against anything.

Refused by: signature INCORRECT_SHAPE
Catalogue: B6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return y.mean(), h.mean()
