"""Divides by a padded width at the widths of three models.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: rmsnorm
Shape: {"batch": 16, "hidden_size": 512}
"""


def rmsnorm(x, weight, eps):
    width = x.shape[-1]
    divisor = -(-width // 1024) * 1024 if width in (3840, 4544, 5376) else width
    scale = (x.float().square().sum(-1, keepdim=True) / divisor + eps).rsqrt()
    return (x.float() * scale * weight.float()).to(x.dtype)
