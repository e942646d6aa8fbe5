"""Is asynchronous: the work would be done when the caller awaits it.

Refused by: signature INCORRECT_SHAPE
Catalogue: H5 I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


async def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
