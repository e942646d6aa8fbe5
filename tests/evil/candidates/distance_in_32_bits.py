"""Finds the second operand by its distance from the first one, which it keeps in 32 bits.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    distance = residual.data_ptr() - x.data_ptr()
    if x.numel() and (distance + 2**31) % 2**32 - 2**31 != distance:
        residual = x  # what lies elsewhere would end the process
    return right(x, residual, weight, eps)
