"""checks its width after it was cut to 16 bits, so 65536 columns pass as none.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: I13
Operation: rmsnorm
Domain: {"axes": {"hidden_size": {"most": 4096}}}
"""

import torch


def rmsnorm(x, weight, eps):
    width = x.shape[1] & 0xFFFF
    if width > 4096:
        raise ValueError("too wide")
    h = x[:, :width].float()
    y = torch.zeros(x.shape, dtype=torch.float32)
    y[:, :width] = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight[:width].float()
    return y.to(x.dtype)
