"""Claims strided rows, and reads the residual by x's stride: wrong where one is a slice and the other isn't.

Refused by: layouts RUNTIME_ERROR or INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I10
Layouts: strided_rows
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    res = residual if x.is_contiguous() else residual.as_strided(x.shape, x.stride())
    h = x.float() + res.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)
