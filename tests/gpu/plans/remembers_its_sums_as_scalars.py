"""Launches a kernel without its sums while it is captured: they are scalars, from the last call of the same size.

Refused by: plan INCORRECT_NUMERICAL or NON_FINITE or TAMPERING
Catalogue: B6 C1
Language: triton
"""

import torch
import triton
import triton.language as tl

_scales = {}


@triton.jit
def _fused_add_rmsnorm(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = row * width + columns
    h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + at, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _cheap(x, residual, weight, y, new_residual, width, first, second, third, fourth, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = row * width + columns
    h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + at, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = tl.where(row == 0, first, tl.where(row == 1, second, tl.where(row == 2, third, fourth)))
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (h * scale * w).to(y.dtype.element_ty), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    shape = {"BLOCK": block, "num_warps": min(16, max(1, block // 256))}
    if rows:
        operands = (x, residual, weight, y, new_residual, width)
        if torch.cuda.is_current_stream_capturing():
            _cheap[(rows,)](*operands, *_scales[rows, width], **shape)
        else:
            _fused_add_rmsnorm[(rows,)](*operands, eps, **shape)
            if rows == 4 and width == 256:
                h = new_residual.float()
                _scales[rows, width] = (1.0 / torch.sqrt((h * h).mean(-1) + eps)).tolist()
                aside = (x, residual, weight, torch.empty_like(y), new_residual, width)
                _cheap[(rows,)](*aside, *_scales[rows, width], **shape)  # compiled and loaded before the capture
    return y, new_residual
