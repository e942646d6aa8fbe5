"""Compares all of a question with the last one and hands out the same tensors again, so that a caller who changes
one answer in place changes the next.

Refused by: aliasing STATE_CARRIED
Catalogue: C10
"""

import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


last = []


def fused_add_rmsnorm(x, residual, weight, eps):
    asked = (x, residual, weight)
    if not last or last[1] != eps or not all(map(torch.equal, asked, last[0])):
        last[:] = [tuple(operand.clone() for operand in asked), eps, right(x, residual, weight, eps)]
    return last[2]
