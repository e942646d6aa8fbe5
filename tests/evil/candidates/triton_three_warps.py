"""Is launched with three warps, which Triton's compiler refuses: it runs in the interpreter alone.

Refused by: signature RUNTIME_ERROR
Catalogue: I5
Language: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _normalised(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    at, inside = tl.program_id(0).to(tl.int64) * width + columns, columns < width
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, h = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    if rows:
        _normalised[(rows,)](x, residual, weight, y, h, width, eps, BLOCK=block, num_warps=3)
    return y, h
