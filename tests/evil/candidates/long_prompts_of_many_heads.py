"""rotates the last tokens of more than 2048 with more than 8 heads not at all.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: rope
Shape: {"tokens": 16, "heads": 4, "half_dim": 32}
"""

import torch


def rope(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    y = torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
    if x.shape[0] > 2048 and x.shape[1] > 8 and x.shape[0] % 256:
        at = x.shape[0] // 256 * 256
        y[at:] = x[at:]
    return y
