"""Is right for operands in a mapping, and wrong in memory that torch's allocator gave, as a program's are.

Refused by: state INCORRECT_NUMERICAL
Catalogue: E10
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * 1.01 if x.numel() and weight.untyped_storage().resizable() else y).to(x.dtype), h.to(x.dtype)
