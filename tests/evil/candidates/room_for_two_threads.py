"""Adds up the parts of two threads, and forgets those of a third.

Refused by: threads INCORRECT_NUMERICAL
Catalogue: I7 E5
"""

import os

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    count = torch.get_num_threads()
    h = x.float() + residual.float()
    parts = [part.square().sum(-1, keepdim=True) for part in h.tensor_split(count, -1)]
    scale = (sum(parts[: len(os.sched_getaffinity(0))]) / x.shape[-1]).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
