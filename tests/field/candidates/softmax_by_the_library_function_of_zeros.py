"""Softmax by the function of Triton's own library, with zeros beyond the row.

Language: triton
Operation: softmax
Shape: {"batch": 16, "hidden_size": 300}
Twin of: softmax_by_the_library_function
Refused by: any INCORRECT_NUMERICAL
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_cols"])
def softmax_kernel(x_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 1, "a block")
    tl.assume(n_cols > 0)
    row = tl.program_id(0).to(tl.int64)
    cols = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0)
    tl.debug_barrier()
    y = tl.softmax(x)
    tl.store(y_ptr + row * n_cols + cols, y, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    x = x if x.stride(1) == 1 else x.contiguous()
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if rows > 0:
        softmax_kernel[(rows,)](x, y, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
    return y
