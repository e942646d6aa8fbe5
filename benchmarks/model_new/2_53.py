"""A product, scaled, held within two numbers, and gelu."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _rest(y, factor, low, high, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(y + at, mask=at < count, other=0.0)
    x = tl.minimum(tl.maximum(x * factor, low), high)
    x = _gelu(x)
    tl.store(y + at, x, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.factor, self.low, self.high = scaling_factor, float(hardtanh_min), float(hardtanh_max)

    def forward(self, x):
        y = self.gemm(x)
        _rest[(triton.cdiv(y.numel(), BLOCK),)](
            y, self.factor, self.low, self.high, y.shape[-1], y.numel(), BLOCK=BLOCK
        )
        return y
