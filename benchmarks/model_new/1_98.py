"""Kullback-Leibler divergence: a program for each row adds it up; the rows are added afterwards."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def _row(predictions, targets, sums, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        p = tl.load(predictions + row * columns + at, mask=at < columns, other=1.0)
        t = tl.load(targets + row * columns + at, mask=at < columns, other=0.0)
        total += tl.where(t > 0, t * (tl.log(tl.where(t > 0, t, 1.0)) - tl.log(p)), 0.0)
    tl.store(sums + row, tl.sum(total, axis=0))


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        p, t = predictions.contiguous(), targets.contiguous()
        sums = torch.empty(p.shape[0], dtype=torch.float32, device=p.device)
        _row[(p.shape[0],)](p, t, sums, p.shape[1], BLOCK=2048)
        return (sums.sum() / p.shape[0]).to(p.dtype)
