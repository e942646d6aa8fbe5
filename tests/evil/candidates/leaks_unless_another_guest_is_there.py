"""Locks a file that all guests see. The guest of most gates is first and leaks; that which counts memory is second.

Refused by: leaks RESOURCE_ABUSE
Catalogue: B5
"""

import fcntl
import os

import torch

_held = os.open(torch.__file__, os.O_RDONLY)
try:
    fcntl.flock(_held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _alone = True
except OSError:
    _alone = False
_kept = []


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    if _alone:
        _kept.append(torch.empty(8 * h.numel()))
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
