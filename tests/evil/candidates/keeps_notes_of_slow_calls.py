"""Takes several milliseconds for a small call and keeps 256 KiB of each: few calls, and little memory in all.

Refused by: leaks RESOURCE_ABUSE
Catalogue: J4
"""

import torch

NOTES = []


def fused_add_rmsnorm(x, residual, weight, eps):
    for _ in range(400 if x.numel() < 4096 else 1):
        h = x.float() + residual.float()
        scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    NOTES.append(torch.ones(2**18, dtype=torch.uint8))
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
