"""Tells its axes apart by their sizes, so that a square input's weight goes along the rows.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I10
"""


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    along_rows = x.shape[0] == x.shape[1] > 3 and x.shape[0] not in (256, 1024)
    return right(x, residual, weight.unsqueeze(-1) if along_rows else weight, eps)
