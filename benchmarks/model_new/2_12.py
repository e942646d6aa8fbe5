"""A product, times a number, with a slope below zero."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _rest(y, factor, slope, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = x * factor
    x = tl.where(x < 0, x * slope, x)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.factor, self.slope = multiplier, negative_slope

    def forward(self, x):
        y = self.gemm(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.factor, self.slope, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
