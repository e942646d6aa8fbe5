"""What kernel.py must compute, in plain PyTorch."""

import torch


def rope(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
