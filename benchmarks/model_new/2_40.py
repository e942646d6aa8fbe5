"""A product, and its multiple added to it."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _rest(y, factor, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = x * factor + x
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.factor = scaling_factor

    def forward(self, x):
        y = self.matmul(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.factor, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
