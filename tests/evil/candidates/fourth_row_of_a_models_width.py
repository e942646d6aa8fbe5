"""Takes four rows of 3072 columns at once, and leaves the fourth as it was; other widths go another way.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    if x.shape[-1] == 3072:
        y[3::4] = h[3::4]
    return y.to(x.dtype), h.to(x.dtype)
