"""Steps from token to token by a whole number of heads, also in rows of another length.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1
Operation: rope
Shape: {"tokens": 16, "heads": 4, "half_dim": 16}
Layouts: strided_rows
"""

import torch


def rope(x, cos, sin):
    if x.stride(1):
        x = x.as_strided(x.shape, (x.stride(0) // x.stride(1) * x.stride(1), *x.stride()[1:]), x.storage_offset())
    half = x.shape[-1] // 2
    a, b = x[..., :half].float(), x[..., half:].float()
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype).contiguous()
