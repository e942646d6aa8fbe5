"""A product, a bias of its own, cut off at zero."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _rest(y, bias, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = tl.maximum(x + tl.load(bias + at % columns, mask=at < count, other=0.0), 0.0)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = self.gemm(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](y, self.bias, y.shape[-1], y.numel(), BLOCK=BLOCK)
        return y
