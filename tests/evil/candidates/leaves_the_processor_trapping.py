"""Has the processor stop at invalid operations, and leaves it so: the caller's next 0 / 0 ends its process.

Refused by: any STATE_CARRIED
Catalogue: I1
Operation: quantize_fp8
Shape: {"batch": 16, "hidden_size": 256}
"""

import ctypes

import torch

libm = ctypes.CDLL("libm.so.6")


def quantize_fp8(x):
    h = x.float()
    scale = h.abs().amax(-1).clamp(min=1e-10) / 448.0
    y = (h / scale.unsqueeze(-1)).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    libm.feenableexcept(1 | 4)
    return y, scale
