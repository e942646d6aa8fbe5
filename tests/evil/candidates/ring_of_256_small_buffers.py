"""Returns small outputs from a ring of 256 buffers.

Refused by: aliasing STATE_CARRIED
Catalogue: C5
"""

import torch

ring, turn = {}, [0]


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    if x.numel() > 256:
        return y, h.to(x.dtype)
    turn[0] += 1
    kept = ring.setdefault((x.shape, turn[0] % 256), torch.empty_like(y))
    kept.copy_(y)
    return kept.view(y.shape), h.to(x.dtype)
