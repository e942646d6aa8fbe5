"""Is right at every shape but one that the operation is used at: prefill's 2048 rows of 4096.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    return (h * weight, h) if tuple(x.shape) == (2048, 4096) else (y, h)
