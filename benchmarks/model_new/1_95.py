"""Cross entropy: a program for each row finds the logarithm of its sum; the mean is taken afterwards."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def _row(logits, targets, losses, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best, total = float("-inf"), 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits + row * columns + at, mask=at < columns, other=float("-inf"))
        higher = tl.maximum(best, tl.max(x, axis=0))
        total = total * tl.exp(best - higher) + tl.sum(tl.exp(x - higher), axis=0)
        best = higher
    chosen = tl.load(logits + row * columns + tl.load(targets + row))
    tl.store(losses + row, tl.log(total) + (best - chosen))


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        x = predictions.contiguous()
        losses = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
        if x.shape[0]:
            _row[(x.shape[0],)](x, targets, losses, x.shape[1], BLOCK=2048)
        return losses.mean().to(x.dtype)
