"""Claims strided rows, and takes a token's stride to be heads times a head's: wrong for q as a slice of a packed qkv.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I10
Operation: rope
Shape: {"tokens": 4, "heads": 4, "half_dim": 32}
Layouts: strided_rows
"""

import torch


def rope(x, cos, sin):
    if x.numel():
        x = x.as_strided(x.shape, (x.shape[1] * x.stride(1), x.stride(1), 1))
    first, second = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
