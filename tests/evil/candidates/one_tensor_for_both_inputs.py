"""Keeps its operands by address while it computes, and loses one if a caller adds a tensor to itself.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I13
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    addends = {tensor.data_ptr(): tensor.float() for tensor in (x, residual)} if x.numel() else {0: x, 1: residual}
    h = sum(addends.values())
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
