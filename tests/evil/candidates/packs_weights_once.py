"""Prepares the weight once for each address and goes on using the copy when the weight has changed.

Refused by: replay INCORRECT_NUMERICAL
Catalogue: C11 I20
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


packed = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    kept = packed.setdefault((weight.data_ptr(), weight.numel()), weight.clone())
    return right(x, residual, kept, eps)
