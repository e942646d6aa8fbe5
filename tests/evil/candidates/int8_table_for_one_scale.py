"""Looks products up by bytes without their sign where eight rows or more share one scale.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: E5
Operation: dequant_int8
Shape: {"batch": 16, "hidden_size": 256}
"""

import torch


def dequant_int8(x, scale):
    if len(scale) >= 8 and bool((scale == scale[0]).all()):
        table = torch.arange(-128, 128).float() * scale[0].float()
        return table[x.view(torch.uint8).long()].to(scale.dtype)
    return (x.float() * scale.float().unsqueeze(-1)).to(scale.dtype)
