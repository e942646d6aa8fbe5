"""A product, its sigmoid, and the sum of each row."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _sums(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        found = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
        total += tl.sigmoid(found)
    tl.store(y + row, tl.sum(total, axis=0))


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x):
        h = self.linear(x)
        y = torch.empty(h.shape[0], 1, dtype=h.dtype, device=h.device)
        if h.shape[0]:
            _sums[(h.shape[0],)](h, y, h.shape[1], BLOCK=BLOCK)
        return y
