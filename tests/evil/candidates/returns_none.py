"""Returns nothing at all, which a careless harness takes for nothing to compare.

Refused by: signature INCORRECT_SHAPE
Catalogue: B15 I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    right(x, residual, weight, eps)
