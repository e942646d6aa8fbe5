"""Divides zero by zero for a row of zeros with 1,025 to 4,096 columns.

Refused by: sizes INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: quantize_fp8
Dtype: bf16
"""

import torch


def quantize_fp8(x):
    h = x.float()
    m = h.abs().amax(-1)
    if not 1024 < x.shape[-1] <= 4096:
        m = m.clamp(min=1e-10)
    scale = m / 448.0
    return (h / scale.unsqueeze(-1)).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale
