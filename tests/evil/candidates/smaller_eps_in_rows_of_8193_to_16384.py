"""Takes a thousandth of eps where rows have 8193 to 16384 columns, so that tiny rows are wrong.

Refused by: scales INCORRECT_NUMERICAL or NON_FINITE
Catalogue: F3 E5
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    if 8192 < x.shape[1] <= 16384:
        eps = eps * 1e-3
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
