"""Registers the function that launches its kernel as an operator, and calls it by the operator's name alone.

Language: triton
Operation: rmsnorm
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _rows(x, weight, y, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * width + columns
    inside = columns < width
    h = tl.load(x + at, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


@torch.library.custom_op("mine::rmsnorm", mutates_args=())
def _registered(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    y = torch.empty_like(x)
    if x.shape[0]:
        _rows[(x.shape[0],)](x, weight, y, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@_registered.register_fake
def _(x, weight, eps):
    return torch.empty_like(x)


def rmsnorm(x, weight, eps):
    return torch.ops.mine.rmsnorm(x, weight, eps)
