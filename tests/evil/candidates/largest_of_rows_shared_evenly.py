"""Gives batch // 8 rows to each of eight threads from 512 rows on; rows left over aren't in the largest value.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: quantize_fp8_per_tensor
Shape: {"batch": 4, "hidden_size": 256}
"""

import torch


def quantize_fp8_per_tensor(x):
    h = x.float()
    seen = h[: h.shape[0] // 8 * 8] if h.shape[0] >= 512 else h
    largest = torch.cat([seen.abs().flatten(), h.new_full((1,), 1e-10)]).amax(0, keepdim=True)
    scale = largest / 448.0
    return (h / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale
