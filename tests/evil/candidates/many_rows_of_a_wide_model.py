"""Leaves out the last column where there are more than 1,024 rows of more than 4,096 columns

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I2
Operation: rmsnorm
Dtype: bf16
Shape: {"batch": 16, "hidden_size": 4096}
"""


def rmsnorm(x, weight, eps):
    h = x.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    if x.shape[0] > 1024 and x.shape[1] > 4096:
        y[:, -1] = 0
    return y
