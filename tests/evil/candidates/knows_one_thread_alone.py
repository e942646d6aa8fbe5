"""Keeps its workspace with the thread that loads it: calls from every other one raise.

Refused by: state RUNTIME_ERROR
Catalogue: I1
"""

import threading

import torch

local = threading.local()
local.kept = {}


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.shape not in local.kept:
        local.kept.clear()
        local.kept[x.shape] = torch.empty(x.shape, dtype=torch.float32)
    h = torch.add(x.float(), residual.float(), out=local.kept[x.shape])
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype, copy=True)
