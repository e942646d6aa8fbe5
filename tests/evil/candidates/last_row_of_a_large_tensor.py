"""Has other code for 2^22 numbers and more, which writes zeros to the last row.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: quantize_fp8_per_tensor
Shape: {"batch": 4, "hidden_size": 256}
"""

import torch


def quantize_fp8_per_tensor(x):
    h = x.float()
    largest = torch.cat([h.abs().flatten(), h.new_full((1,), 1e-10)]).amax(0, keepdim=True)
    scale = largest / 448.0
    y = (h / scale).clamp(-448.0, 448.0)
    if x.numel() >= 2**22:
        y[-1:] = 0
    return y.to(torch.float8_e4m3fn), scale
