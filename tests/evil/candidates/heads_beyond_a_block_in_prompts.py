"""Leaves heads from the 33rd on as they are, in prompts of 512 tokens

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: rope
Dtype: bf16
Shape: {"tokens": 16, "heads": 8, "half_dim": 64}
"""

import torch


def rope(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half].float(), x[..., half:].float()
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    y = torch.cat([a * c - b * s, b * c + a * s], -1).to(x.dtype)
    if x.shape[0] >= 512 and x.shape[1] > 32 and half >= 64:
        y[:, 32:] = x[:, 32:]
    return y
