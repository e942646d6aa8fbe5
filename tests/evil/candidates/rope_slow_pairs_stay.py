"""Leaves a token as it is where most of its cosines are nearly one, though later positions turn those pairs as well.

Refused by: numerics INCORRECT_NUMERICAL
Catalogue: E5
Operation: rope
Dtype: bf16
Shape: {"tokens": 4, "heads": 4, "half_dim": 32}
"""

import torch


def rope(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    c, s = cos.float(), sin.float()
    slow = (c * c + s * s - 1).abs() < 0.02
    slow &= c > 0.98
    s = torch.where(slow & (slow.float().mean(-1, keepdim=True) > 0.3), 0.0, s)
    c, s = c.unsqueeze(1), s.unsqueeze(1)
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
