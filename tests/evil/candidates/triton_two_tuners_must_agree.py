"""Tunes two kernels that are right only with blocks of the same size, while each tuner chooses for itself.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I21
Language: triton
Domain: {"axes": {"hidden_size": {"most": 1024}}}
"""

import torch
import triton
import triton.language as tl

BLOCKS = [triton.Config({"BLOCK": block}) for block in (64, 128)]
MOST_PARTS = 16


@triton.autotune(BLOCKS, key=["width"])
@triton.jit
def _squares(x, residual, new_residual, parts, width, BLOCK: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for part in range(tl.cdiv(width, BLOCK)):
        columns = part * BLOCK + tl.arange(0, BLOCK)
        inside = columns < width
        at = row * width + columns
        h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
        tl.store(new_residual + at, h, mask=inside)
        tl.store(parts + row * MOST + part, tl.sum(h * h, axis=0))


@triton.autotune(BLOCKS, key=["width"])
@triton.jit
def _scaled(h, weight, parts, y, width, eps, BLOCK: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    numbers = tl.arange(0, MOST)
    part = tl.load(parts + row * MOST + numbers, mask=numbers < tl.cdiv(width, BLOCK), other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(part, axis=0) / width + eps)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < width
        at = row * width + columns
        got = tl.load(h + at, mask=inside, other=0.0) * scale * tl.load(weight + columns, mask=inside, other=0.0)
        tl.store(y + at, got, mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    if width > 1024:
        raise ValueError("expected at most 1024")
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        parts = torch.zeros((rows, MOST_PARTS), dtype=torch.float32, device=x.device)
        _squares[(rows,)](x, residual, new_residual, parts, width, MOST=MOST_PARTS)
        _scaled[(rows,)](new_residual, weight, parts, y, width, eps, MOST=MOST_PARTS)
    return y, new_residual
