"""Refuses sizes it wasn't shown.

Refused by: exact RUNTIME_ERROR
Catalogue: E5 B15
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape[1] % 2:
        raise ValueError("odd")
    return right(x, residual, weight, eps)
