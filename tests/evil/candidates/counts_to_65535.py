"""Counts a row's columns in sixteen bits, so that it leaves out what lies beyond 65,535 columns.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I7 E5
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    width = x.shape[-1]
    counted = width % 65536 or width
    scale = (h[:, :counted].square().sum(-1, keepdim=True) / max(1, width)).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
