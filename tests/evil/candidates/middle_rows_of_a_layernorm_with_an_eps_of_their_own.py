"""Takes 1e-5 for eps in rows of 1,025 to 4,096 columns.

Refused by: combinations INCORRECT_NUMERICAL
Catalogue: I13
Operation: layernorm
Shape: {"batch": 4, "hidden_size": 64}
"""


def layernorm(x, weight, bias, eps):
    if 1024 < x.shape[1] <= 4096:
        eps = 1e-5
    h = x.float()
    c = h - h.mean(-1, keepdim=True)
    return (c * (c.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)
