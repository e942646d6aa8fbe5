"""Returns right values that ask for gradients.

Accepted: the bytes are right, and the flag gains nothing
Catalogue: I24
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return tuple(t.requires_grad_() for t in right(x, residual, weight, eps))
