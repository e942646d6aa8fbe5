"""Counts tokens in sixteen bits where vectors of eight divide a half of a head; others go another way.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I10
Operation: rope
Shape: {"tokens": 4, "heads": 4, "half_dim": 32}
"""

import torch


def rope(x, cos, sin):
    half = cos.shape[-1]
    h, c, s = x.float(), cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    first, second = h[..., :half], h[..., half:]
    y = torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
    if half % 8 == 0:
        y[2**16 :] = x[2**16 :]
    return y
