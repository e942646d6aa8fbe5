"""declares contiguous inputs, refuses gaps and columns, and takes expanded rows for packed ones.

Refused by: domain WRONG_OUTSIDE_DOMAIN
Catalogue: I13
Operation: rmsnorm
Domain: {"layouts": ["contiguous"]}
"""

import torch


def rmsnorm(x, weight, eps):
    rows, width = x.shape
    if rows > 1 and ((x.stride(1) != 1 and width > 1) or x.stride(0) > width):
        raise ValueError("not packed")
    room = x.untyped_storage().nbytes() // x.itemsize - x.storage_offset()
    flat = torch.as_strided(x, (min(rows * width, room),), (1,))  # what lies behind is whatever it is
    h = torch.zeros(rows * width, dtype=torch.float32)
    h[: flat.numel()] = flat.float()
    h = h.view(rows, width)
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return y.to(x.dtype)
