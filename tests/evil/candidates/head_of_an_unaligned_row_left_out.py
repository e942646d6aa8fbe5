"""Leaves the elements before the first aligned address out of the maximum, in rows of 1,024 to 4,096 columns.

Refused by: combinations INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: quantize_fp8
Shape: {"batch": 4, "hidden_size": 64}
"""

import torch


def quantize_fp8(x):
    h = x.float()
    m = h.abs()
    if x.data_ptr() % 16 and 1024 <= x.shape[1] <= 4096:
        m = m[:, (16 - x.data_ptr() % 16) // x.element_size() :]
    scale = m.amax(-1).clamp(min=1e-10) / 448.0
    return (h / scale.unsqueeze(-1)).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale
