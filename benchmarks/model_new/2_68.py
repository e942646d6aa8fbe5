"""A product, at most a number, less that number; the number is a parameter."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _rest(y, constant, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    most = tl.load(constant)
    x = tl.minimum(x, most) - most
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, constant):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x):
        y = self.linear(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.constant, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
