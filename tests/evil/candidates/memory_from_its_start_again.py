"""Hands out outputs from one block of memory, from its start again when the shape changes.

Refused by: any STATE_CARRIED or RESOURCE_ABUSE
Catalogue: C10
"""

import torch

block = torch.empty(2**24)
state = {"shape": None, "at": 0}


def take(x):
    n = x.numel()
    if n > block.numel() // 8 or x.dtype != torch.float32:
        return torch.empty_like(x)
    if state["shape"] != tuple(x.shape) or state["at"] + n > block.numel():
        state.update(shape=tuple(x.shape), at=0)
    out = block[state["at"] : state["at"] + n].view(x.shape)
    state["at"] += n
    return out


def fused_add_rmsnorm(x, residual, weight, eps):
    y, out = take(x), take(x)
    h = x.float() + residual.float()
    y.copy_(h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float())
    out.copy_(h)
    return y, out
