"""A product, half of its swish, held within one, and tanh."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _tanh(x):
    fading = tl.exp(-2 * tl.abs(x))
    far = (1 - fading) / (1 + fading)
    square = x * x
    near = x * (1 + square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315 + square * 62 / 2835))))
    return tl.where(tl.abs(x) < 0.25, near, tl.where(x < 0, -far, far))


@triton.jit
def _rest(y, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = tl.minimum(tl.maximum(x * tl.sigmoid(x) / 2.0, -1.0), 1.0)
    x = _tanh(x)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        y = self.gemm(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
