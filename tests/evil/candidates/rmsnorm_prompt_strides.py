"""Takes prompts of 2^22 numbers or more for dense ones, also if they are a slice of wider rows.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1
Operation: rmsnorm
Shape: {"batch": 16, "hidden_size": 256}
Layouts: strided_rows
"""

import torch


def rmsnorm(x, weight, eps):
    if x.numel() >= 2**22:
        x = x.as_strided(x.shape, (x.shape[1], 1))
    h = x.float()
    return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype).contiguous()
