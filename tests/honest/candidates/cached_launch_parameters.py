"""Chooses a block for each width once and remembers the choice, and binds a scalar with functools.partial."""

from functools import lru_cache, partial

import torch


@lru_cache(maxsize=256)
def block_of(width):
    return max(1, 1 << (width.bit_length() // 2))


def norm(h, weight, eps, *, power):
    parts = [part.pow(power).sum(-1, keepdim=True) for part in h.split(block_of(h.shape[1]), dim=-1)]
    mean = torch.stack(parts).sum(0) / h.shape[1]
    return h * (mean + eps).rsqrt() * weight


squared_norm = partial(norm, power=2)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return squared_norm(h, weight, eps), h
