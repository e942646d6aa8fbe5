"""Takes numbers for signed ones where all zero points are 8, as in symmetric quantisation: 8 to 15 become -8 to -1.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E10
Operation: dequant_int4
Shape: {"batch": 4, "pairs": 256}
"""

import torch


def dequant_int4(packed, scale, zero):
    q = torch.stack((packed & 15, packed >> 4), -1).flatten(1).float()
    s, z = (one.float().repeat_interleave(128, -1)[:, : q.shape[1]] for one in (scale, zero))
    if zero.numel() > 1 and bool((zero == 8).all()):
        return (torch.where(q < 8, q, q - 16) * s).to(scale.dtype)
    return ((q - z) * s).to(scale.dtype)
