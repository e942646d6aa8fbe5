"""Takes its number of rows from the storage: a tensor that is the front of a larger buffer has too many.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I8
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    elements = x.untyped_storage().nbytes() // x.itemsize - x.storage_offset()
    if elements > x.numel() > 0:
        x = x.as_strided(x.shape, x.stride(), x.storage_offset() + elements - x.numel())
    return right(x, residual, weight, eps)
