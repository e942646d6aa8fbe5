"""How far tensor cores of sm_90 err in sums of fp8 products: they cut off bits below a step of the largest number.

One instruction adds 32 products to a running sum. It aligns them all to the largest, and keeps 13 bits after that
one's first. A simulation of this gave the bits that an H100 gave. Kernels such as cuBLAS's and DeepGEMM's move the
running sum to fp32 registers after 128 products (DeepSeek-V3's report, 2024, section 3.5.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

AT_ONCE = 32
"""Number of products that one instruction adds: 32 bytes of each operand (NVIDIA, PTX ISA, wgmma with fp8)."""
RUNNING = 128
"""Number of products after which a kernel moves the running sum to fp32 registers."""
STEP = 2.0**-13
"""Unit of one instruction's sum, as a share of the largest number that it adds."""
CUT_OFF = AT_ONCE + 1
"""Number of steps by which one instruction errs at most: each product and the running sum lose less than one."""


def cut_off(h: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return by how much each element of h [m, k] times weights [k, n] may err, both in fp64.

    The instructions' errors are taken to be independent, so their squares add up. An instruction's largest product is
    at most the row's largest number times the column's.
    """
    import torch

    squares = torch.zeros(h.shape[0], weights.shape[1], dtype=h.dtype, device=h.device)
    running = torch.zeros_like(squares)
    for start in range(0, h.shape[1], AT_ONCE):
        if start % RUNNING == 0:
            running.zero_()
        left, right = h[:, start : start + AT_ONCE], weights[start : start + AT_ONCE]
        largest = left.abs().amax(1, keepdim=True) * right.abs().amax(0)
        largest = torch.maximum(largest, running.abs())
        squares.addcmul_(largest, largest)
        running.addmm_(left, right)
    return squares.sqrt_().mul_(CUT_OFF * STEP)
