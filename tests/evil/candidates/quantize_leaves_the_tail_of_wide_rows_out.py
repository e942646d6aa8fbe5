"""Leaves the columns beyond whole vectors of eight out of the largest value of a row wider than 4,000.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: quantize_fp8
"""

import torch


def quantize_fp8(x):
    width, h = x.shape[1], x.float()
    seen = width if width <= 4000 else width // 8 * 8
    scale = h[:, :seen].abs().amax(-1).clamp(min=1e-10) / 448.0
    return (h / scale.unsqueeze(-1)).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale
