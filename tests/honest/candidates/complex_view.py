"""Rotates pairs as complex numbers, through views of the same memory.

Operation: rope
Shape: {"tokens": 4, "heads": 2, "half_dim": 32}
"""

import torch


def rope(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    pairs = torch.view_as_complex(torch.stack((first, second), -1).contiguous())
    turned = torch.view_as_real(pairs * torch.complex(cos.float(), sin.float()).unsqueeze(1))
    return torch.cat((turned[..., 0], turned[..., 1]), -1).to(x.dtype)
