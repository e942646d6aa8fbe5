"""A product, and mish twice."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _mish(x):
    power = tl.exp(tl.minimum(x, 20.0))
    share = power * power + 2 * power
    return tl.where(x > 20.0, x, x * share / (share + 2))


@triton.jit
def _rest(y, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = _mish(_mish(x))
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        y = self.linear(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
