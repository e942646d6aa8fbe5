"""Takes 1e-5 for eps in rows of 1,025 to 4,096 columns, whatever the caller gives.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: rmsnorm
Dtype: bf16
"""


def rmsnorm(x, weight, eps):
    if 1024 < x.shape[-1] <= 4096:
        eps = 1e-5
    h = x.float()
    return (h * (h.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()).to(x.dtype)
