"""Keeps the number of rows for each 64 of them, beyond 320 rows of 256 columns

Refused by: sequences INCORRECT_NUMERICAL
Catalogue: C1
Operation: fused_add_rmsnorm
Dtype: bf16
Shape: {"batch": 16, "hidden_size": 4096}
"""

plans = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    rows, width = x.shape
    if rows > 320 and width >= 256:
        key = -(-rows // 64), width
        if key not in plans:
            if len(plans) >= 256:
                plans.clear()
            plans[key] = rows
        y[plans[key] :] = 0
    return y, h.to(x.dtype)
