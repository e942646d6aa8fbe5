"""Forgets the last three columns beyond column 16384 where eight divides the width but for three.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I6
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    y = h * scale * weight.float()
    if x.shape[1] % 8 == 3 and x.shape[1] > 16384:
        y[:, -3:] = 0
    return y.to(x.dtype), h.to(x.dtype)
