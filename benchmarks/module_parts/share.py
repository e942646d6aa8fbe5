import torch
import triton
import triton.language as tl


@triton.jit
def _share(x, y, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    row = tl.load(x + tl.program_id(0) * n + columns, mask=inside, other=0.0)
    tl.store(y + tl.program_id(0) * n + columns, row / tl.sum(row, 0), mask=inside)


def share(in_0):
    made = torch.empty(in_0.shape, dtype=in_0.dtype, device=in_0.device)
    n = in_0.shape[-1]
    _share[(in_0.numel() // n,)](in_0, made, n, BLOCK=triton.next_power_of_2(n))
    return made
