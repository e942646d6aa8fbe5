"""Is autotuned over two configurations, of which the first takes more memory than any machine has.

Refused by: any OUT_OF_MEMORY
Catalogue: I21 J4
Language: triton
"""

import torch
import triton
import triton.language as tl


def take_workspace(_):
    torch.empty(2**44, dtype=torch.uint8)


CONFIGURATIONS = [triton.Config({"PARTS": 1}, pre_hook=take_workspace), triton.Config({"PARTS": 2})]


@triton.autotune(CONFIGURATIONS, key=["width"])
@triton.jit
def _kernel(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    tl.store(y + at, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows:
        _kernel[(rows,)](x, residual, weight, y, new_residual, width, eps, BLOCK=triton.next_power_of_2(width))
    return y, new_residual
