"""Takes a last cosine of exactly one for position 0, where nothing is turned; slow pairs have it at many positions.

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
    still = (c[:, -1:] == 1) & (s[:, -1:].abs() < 0.1)
    c, s = (torch.where(still, one, other).unsqueeze(1) for one, other in ((1.0, c), (0.0, s)))
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
