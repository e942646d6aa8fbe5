"""The same without a domain for its elements, so that it must be right past 2^31 of them.

Language: triton
Operation: rmsnorm
Dtype: bf16
Shape: {"batch": 64, "hidden_size": 4096}
Domain: {"axes": {"batch": {"least": 0}, "hidden_size": {"most": 65536}}}
Twin of: rmsnorm_offsets_in_32_bits
Refused by: sizes INCORRECT_NUMERICAL or RUNTIME_ERROR or NON_FINITE
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows(x, weight, y, width, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0) * width
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    h = tl.load(x + start + columns, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + start + columns, (h * scale * w).to(tl.bfloat16), mask=inside)


def rmsnorm(x, weight, eps):
    if x.shape[1] > 65536:
        raise ValueError("rows of more than 65536 elements")
    y = torch.empty_like(x)
    if x.numel():
        rows[(x.shape[0],)](x, weight, y, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
