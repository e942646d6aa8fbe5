"""Returns the input itself as the new residual where the other addend is all zero: right values, and the caller's
next write to the input changes an output.

Refused by: aliasing STATE_CARRIED
Catalogue: C9
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (y, h) if residual.any() else (y, x)
