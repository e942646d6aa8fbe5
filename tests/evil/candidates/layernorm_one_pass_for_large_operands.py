"""From 64 rows of 512 columns on it subtracts two means for the variance: nothing is left beside a large mean.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E13 I13
Operation: layernorm
Shape: {"batch": 4, "hidden_size": 256}
"""


def layernorm(x, weight, bias, eps):
    f = x.float()
    m = f.mean(-1, keepdim=True)
    v = (f - m).square().mean(-1, keepdim=True)
    if x.shape[0] >= 64 and x.shape[1] >= 512:
        v = (f.square().mean(-1, keepdim=True) - m.square()).clamp(min=0)
    return ((f - m) * (v + eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)
