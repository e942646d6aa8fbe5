"""Each row of a matrix times its own number."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _scaled(a, b, y, columns, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    factor = tl.load(a + at // columns, mask=inside, other=0.0)
    tl.store(y + at, tl.load(b + at, mask=inside, other=0.0) * factor, mask=inside)


class ModelNew(nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        y = torch.empty_like(B)
        if B.numel():
            _scaled[(triton.cdiv(B.numel(), BLOCK),)](A, B, y, B.shape[1], B.numel(), BLOCK=BLOCK)
        return y
