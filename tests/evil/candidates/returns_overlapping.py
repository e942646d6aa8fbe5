"""Returns two outputs that share half of their memory, so that the second overwrites the first.

Refused by: signature INCORRECT_NUMERICAL or INCORRECT_STRIDES or INCORRECT_SHAPE
Catalogue: I12 C9
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    both = torch.empty(y.numel() * 3 // 2)
    first, second = both[: y.numel()].view_as(y), both[y.numel() // 2 : y.numel() // 2 + y.numel()].view_as(y)
    first.copy_(y)
    second.copy_(h)
    return first, second
