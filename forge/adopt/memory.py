"""Says how a call's operands lie in memory: the alignment of addresses, and operands that overlap."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from forge.adopt.described import OperationForm

if TYPE_CHECKING:
    import torch

LOW_BITS = 255
"""Bits of an address that a choice depends on. No instruction asks for more than 128 bytes."""


def alignment(address: int) -> int:
    """Return the number of bytes, up to 256, that divides an address; several are joined by `|` before."""
    low = address & LOW_BITS
    return low & -low if low else LOW_BITS + 1


def find_overlap(op: OperationForm) -> "Callable[[Sequence[torch.Tensor]], str | None]":
    """Return a function that takes a call's operands and names one that is written in place and shares memory.

    It returns None if there is none. The operands are in the operation's order, with any strides.
    """
    names = [one.name for one in op.inputs]
    pairs = [(one, other) for one, other in permutations(range(len(names)), 2) if names[one] in op.updates]

    def overlap(operands: "Sequence[torch.Tensor]") -> str | None:
        begins = [one.data_ptr() for one in operands]
        ends = [one.data_ptr() + (one.nbytes if one.is_contiguous() else strided_bytes(one)) for one in operands]
        for one, other in pairs:
            if begins[one] < ends[other] and begins[other] < ends[one]:
                return names[one]
        return None

    return overlap


def strided_bytes(tensor: "torch.Tensor") -> int:
    """Return the number of bytes from a tensor's first element to its last; 0 if it is empty.

    It may have any sizes and strides.
    """
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size() if tensor.numel() else 0
