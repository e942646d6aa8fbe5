"""A product, less a number, times a number, cut off at zero."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _rest(y, less, factor, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = (x - less) * factor
    x = tl.maximum(x, 0.0)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, subtract_value, multiply_value):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.less, self.factor = subtract_value, multiply_value

    def forward(self, x):
        y = self.linear(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.less, self.factor, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
