"""Leaves the tokens beyond whole blocks of 32 as they are, in prompts of more than 8192 tokens of eight heads.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: rope
Shape: {"tokens": 16, "heads": 4, "half_dim": 16}
"""

import torch


def rope(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    y = torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)
    if x.shape[0] > 8192 and x.shape[1] >= 8:
        done = x.shape[0] // 32 * 32
        y[done:] = x[done:]
    return y
