"""Returns eight-bit quantised tensors, a quarter of the memory traffic.

Refused by: signature INCORRECT_DTYPE or INCORRECT_SHAPE
Catalogue: B7 F3
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    return tuple(t.to(torch.float8_e4m3fn) for t in right(x, residual, weight, eps))
