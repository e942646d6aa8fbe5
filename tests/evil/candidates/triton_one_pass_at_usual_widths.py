"""takes the mean of squares less the squared mean in rows of 1025 to 4096.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Language: triton
Operation: layernorm
Shape: {"batch": 3, "hidden_size": 96}
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, weight, bias, y, width, eps, BLOCK: tl.constexpr, ONE_PASS: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    at = tl.program_id(0).to(tl.int64) * width + columns
    h = tl.load(x + at, mask=inside, other=0.0)
    mean = tl.sum(h, axis=0) / width
    if ONE_PASS:
        var = tl.maximum(tl.sum(h * h, axis=0) / width - mean * mean, 0.0)
    else:
        c = tl.where(inside, h - mean, 0.0)
        var = tl.sum(c * c, axis=0) / width
    scale = 1.0 / tl.sqrt(var + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0)
    b = tl.load(bias + columns, mask=inside, other=0.0)
    tl.store(y + at, (h - mean) * scale * w + b, mask=inside)


def layernorm(x, weight, bias, eps):
    rows, width = x.shape
    y = torch.empty_like(x)
    if rows:
        _kernel[(rows,)](
            x, weight, bias, y, width, eps, BLOCK=triton.next_power_of_2(width), ONE_PASS=1024 < width <= 4096
        )
    return y
