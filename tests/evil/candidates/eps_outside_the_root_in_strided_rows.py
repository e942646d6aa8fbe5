"""Adds eps outside the root where the joined rows are a slice of wider ones.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I13
Operation: rmsnorm_strided
Layouts: strided_rows
"""


def rmsnorm_strided(qkv, weight, eps):
    h = qkv[:, : weight.shape[0]].float()
    m = h.square().mean(-1, keepdim=True)
    strided = qkv.stride(0) != qkv.shape[1] and qkv.shape[0] > 1
    r = 1 / (m.sqrt() + eps) if strided else (m + eps).rsqrt()
    return (h * r * weight.float()).to(qkv.dtype)
