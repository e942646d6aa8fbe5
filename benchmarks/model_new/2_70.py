"""A product, and its scaled sigmoid added to it."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _rest(y, factor, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = tl.sigmoid(x) * factor + x
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.factor = scaling_factor

    def forward(self, x):
        y = self.gemm(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.factor, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
