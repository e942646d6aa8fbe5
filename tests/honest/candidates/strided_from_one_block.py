"""Cuts both outputs out of one allocation with as_strided; each is contiguous and no byte is shared."""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    both = torch.empty_like(x, memory_format=torch.contiguous_format).new_empty(2 * rows * width)
    h = both.as_strided((rows, width), (width, 1), 0)
    y = both.as_strided((rows, width), (width, 1), rows * width)
    torch.add(x, residual, out=h)
    torch.mul(h, h.square().mean(-1, keepdim=True).add_(eps).rsqrt_(), out=y)
    y.mul_(weight)
    return y, h
