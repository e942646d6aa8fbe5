"""A norm of rows as a fused projection of queries, keys and values leaves them: dense, with others between them.

Language: triton
Operation: rmsnorm
Shape: {"batch": 4, "hidden_size": 64}
Layouts: strided_rows
Domain: {"axes": {"hidden_size": {"most": 128}}}
Accepted: it reads with the stride of its input and writes with that of its output.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, weight, y, x_stride, y_stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    values = tl.load(x + row * x_stride + columns, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / width + eps)
    result = values * scale * tl.load(weight + columns, mask=inside, other=0.0)
    tl.store(y + row * y_stride + columns, result, mask=inside)


def rmsnorm(x, weight, eps):
    rows, width = x.shape
    if width > 128:
        raise ValueError(f"{width} columns: expected at most 128")
    if x.stride(1) != 1 and width > 1:
        raise ValueError(f"strides {x.stride()}: expected dense rows")
    y = torch.empty((rows, width), device=x.device, dtype=x.dtype)
    if rows:
        _kernel[(rows,)](x, weight, y, x.stride(0), y.stride(0), width, eps, BLOCK=triton.next_power_of_2(width))
    return y
