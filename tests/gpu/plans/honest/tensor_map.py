"""Residual add and RMSNorm in Triton, its rows read by tensor maps (TMA) where their addresses allow them.

Accepted: it does what it says.
Catalogue: I0
Language: triton
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _mapped(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    h = tl.reshape(x.load([row, 0]), [BLOCK]).to(tl.float32) + tl.reshape(residual.load([row, 0]), [BLOCK]).to(
        tl.float32
    )
    tl.store(new_residual + row.to(tl.int64) * width + columns, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row.to(tl.int64) * width + columns, (h * scale * w).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _pointed(x, residual, weight, y, new_residual, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    h = tl.load(x + row * width + columns, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + row * width + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(new_residual + row * width + columns, h.to(new_residual.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * width + columns, (h * scale * w).to(y.dtype.element_ty), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows == 0 or width == 0:
        return y, new_residual
    block = triton.next_power_of_2(width)
    apart = width * x.element_size()
    aligned = apart % 16 == 0 and x.data_ptr() % 16 == 0 and residual.data_ptr() % 16 == 0
    if aligned and 16 <= block <= 256:
        given = [TensorDescriptor(one, [rows, width], [width, 1], [1, block]) for one in (x, residual)]
        _mapped[(rows,)](*given, weight, y, new_residual, width, eps, BLOCK=block)
    else:
        _pointed[(rows,)](
            x, residual, weight, y, new_residual, width, eps, BLOCK=block, num_warps=min(16, max(1, block // 256))
        )
    return y, new_residual
