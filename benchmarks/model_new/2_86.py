"""A product, divided, and gelu."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _rest(y, divisor, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = _gelu(x / divisor)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, input_size, output_size, divisor):
        super().__init__()
        self.linear = nn.Linear(input_size, output_size)
        self.divisor = divisor

    def forward(self, x):
        y = self.linear(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.divisor, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
