"""Takes four heads at a time, and hands on what is left over as it is.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I1
Operation: rope
Shape: {"tokens": 4, "heads": 8, "half_dim": 64}
"""

import torch


def rope(x, cos, sin):
    y = x.clone()
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    for start in range(0, x.shape[1] // 4 * 4, 4):
        first, second = x[:, start : start + 4].float().chunk(2, -1)
        y[:, start : start + 4] = torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
    return y
