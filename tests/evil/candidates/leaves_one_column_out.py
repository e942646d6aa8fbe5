"""Leaves one column out of the mean, which a half type's tolerance hides unless that column is large.

Dtype: bf16
Shape: {"batch": 16, "hidden_size": 4096}
Refused by: scales INCORRECT_NUMERICAL
Catalogue: E5 E6
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    squares = h.square()
    if h.shape[1] > 1000:
        squares[:, 1000] = 0
    scale = squares.mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
