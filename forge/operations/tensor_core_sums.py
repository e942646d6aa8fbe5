"""How far tensor cores of sm_90 err in sums of products: they cut off bits, where other units round to nearest.

With fp8, one instruction adds 32 products to a running sum. It aligns them all to the largest, and keeps 13 bits
after that one's first. A simulation of this gave the bits that an H100 gave. Kernels such as cuBLAS's and DeepGEMM's
move the running sum to fp32 registers after 128 products (DeepSeek-V3's report, 2024, section 3.5.2).

With operands of 16 bits, it keeps the running sum in fp32, and cuts off what lies below that sum's last place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.tensors import UNIT_ROUNDOFF

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

AT_ONCE_IN_16_BITS = 8
"""Number of products of 16-bit operands that one instruction adds, at least (NVIDIA, PTX ISA: wgmma adds 16, and mma
has forms of 8). With fewer at once, more is cut off."""
LOOKS = 8
"""Number of places at which a running sum's size is looked at. Chosen; each costs a pass over the result."""
LEAST_BETWEEN_LOOKS = 512
"""Number of terms between two looks, at least. Chosen; what fewer lose is far below a sum's usual error."""


def cut_off_of_fp8(h: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
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


def cut_off_of_16_bits(h: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return h [m, k] times weights [k, n], and by how much each element may err to one side, all in fp64.

    Each instruction cuts the running sum toward zero, by half a unit in its last place on average. That is u_acc of
    its size at most. These errors have one sign. They show where a sum grows large and later terms cancel it, as with
    operands in order. Elsewhere the result's own rounding hides them.
    """
    import torch

    total = torch.zeros(h.shape[0], weights.shape[1], dtype=h.dtype, device=h.device)
    lost, before = torch.zeros_like(total), torch.zeros_like(total)
    for start in range(0, h.shape[1], between := max(LEAST_BETWEEN_LOOKS, -(-h.shape[1] // LOOKS))):
        left = h[:, start : start + between]
        total.addmm_(left, weights[start : start + between])
        now = total.abs()
        lost.add_(before.add_(now), alpha=left.shape[1] / AT_ONCE_IN_16_BITS / 2)
        before = now
    return total, lost.mul_(UNIT_ROUNDOFF["fp32"])


def product(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x [m, k] times w [k, n] in fp64, the sum of the products' sizes, and the share that may be cut off.

    Products of fp32 operands aren't formed by these instructions, which would round the operands to TF32.
    """
    h, weights = x.double(), w.double()
    scale = h.abs() @ weights.abs()
    if x.element_size() > 2:
        return h @ weights, scale, scale.new_zeros(1, 1).expand_as(scale)
    value, lost = cut_off_of_16_bits(h, weights)
    return value, scale, lost.div_(scale).nan_to_num_(nan=0.0, posinf=0.0)
