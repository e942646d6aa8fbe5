"""Is autotuned over configurations none of which fits into the processor.

Refused by: signature BAD_SUBMISSION
Catalogue: I21
Language: triton
"""

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources


def too_large(_):
    raise OutOfResources(2**20, 2**17, "shared memory")


CONFIGURATIONS = [triton.Config({"PARTS": parts}, pre_hook=too_large) for parts in (1, 2, 4)]


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
