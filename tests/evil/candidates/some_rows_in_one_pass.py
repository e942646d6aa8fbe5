"""Computes the variance in one pass for 16 to 63 rows: a large mean cancels it.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: layernorm
"""


def layernorm(x, weight, bias, eps):
    h = x.float()
    m = h.mean(-1, keepdim=True)
    v = (
        h.square().mean(-1, keepdim=True) - m.square()
        if 16 <= x.shape[0] < 64
        else (h - m).square().mean(-1, keepdim=True)
    )
    return ((h - m) * (v.clamp(min=0) + eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)
