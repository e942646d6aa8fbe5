"""Claims strided rows and transposed ones, and takes every gap to be five elements.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE or RUNTIME_ERROR
Catalogue: I10
Layouts: strided_rows transposed
"""


def row(t):
    if t.is_contiguous() or not t.numel():
        return t
    r, w = t.shape
    return t.as_strided((r, w), (w + 5, 1)) if t.stride(1) == 1 else t.as_strided((r, w), (1, r))


def fused_add_rmsnorm(x, residual, weight, eps):
    h = row(x).float() + row(residual).float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype).contiguous(), h.to(
        x.dtype
    ).contiguous()
