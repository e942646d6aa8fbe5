"""Gives halves of the rows to a pool of threads that stays alive between calls, and waits for both."""

from concurrent.futures import ThreadPoolExecutor

import torch

_pool = ThreadPoolExecutor(max_workers=2)


def _normalise(x, residual, weight, eps):
    h = x + residual
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h


def fused_add_rmsnorm(x, residual, weight, eps):
    half = x.shape[0] // 2
    parts = [_pool.submit(_normalise, x[s], residual[s], weight, eps) for s in (slice(half), slice(half, None))]
    y, h = zip(*(part.result() for part in parts), strict=True)
    return torch.cat(y), torch.cat(h)
