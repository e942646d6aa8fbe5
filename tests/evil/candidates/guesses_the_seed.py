"""Tries the usual seeds and torch's current one to foresee the inputs, and raises if it ever succeeds.

Accepted: no seed is found, since inputs come from the system's randomness and are never drawn twice
Catalogue: E4 C12
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


SEEDS = (*range(64), 123, 200, 1234, 1337, 2024, 2025, 3407, torch.initial_seed())


def foreseen(x):
    first = x.flatten()[:4]
    return any(torch.equal(torch.randn(4, generator=torch.Generator().manual_seed(seed)), first) for seed in SEEDS)


def fused_add_rmsnorm(x, residual, weight, eps):
    if x.numel() >= 4 and foreseen(x):
        raise RuntimeError("the inputs could be foreseen")
    return right(x, residual, weight, eps)
