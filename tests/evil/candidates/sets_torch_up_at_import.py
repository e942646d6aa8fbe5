"""Sets torch up to its own liking where it is loaded: one thread, fp32 products in bf16, subnormal numbers flushed.

Refused by: load STATE_CARRIED
Catalogue: A7 A8
"""

import torch

torch.set_num_threads(1)
torch.set_float32_matmul_precision("medium")
torch.set_flush_denormal(True)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
