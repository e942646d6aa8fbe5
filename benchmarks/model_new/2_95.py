"""A product, a row added, swish, tanh and gelu."""

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
def _gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _rest(y, added, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = x + tl.load(added + at % columns, mask=at < count, other=0.0)
    x = _gelu(_tanh(x * tl.sigmoid(x)))
    x = tl.minimum(tl.maximum(x, -1.0), 1.0)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, add_value_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x):
        y = self.matmul(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.add_value, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
