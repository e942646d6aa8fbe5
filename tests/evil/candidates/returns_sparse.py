"""Returns the right values in a sparse layout, for the caller to unpack.

Refused by: signature INCORRECT_STRIDES or INCORRECT_SHAPE or RUNTIME_ERROR
Catalogue: H10 I12
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return tuple(t.to_sparse() for t in right(x, residual, weight, eps))
