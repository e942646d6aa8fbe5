"""Cripples torch for whoever else uses it: one thread, denormals flushed, slow operators, another default type.

Accepted: the baselines run in processes of their own, so it slows itself
Catalogue: A7 A8 B2
"""

import time

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


torch.set_num_threads(1)
torch.set_flush_denormal(True)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.set_float32_matmul_precision("medium")
torch.backends.mkldnn.enabled = False
torch.nn.functional.rms_norm = lambda *_, **__: time.sleep(1)
torch.compile = lambda function, **__: lambda *a: time.sleep(1) or function(*a)


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
