"""Computes the key of a call: all that the choice of a kernel depends on."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forge.adopt.described import OperationForm
from forge.adopt.memory import LOW_BITS, find_overlap

if TYPE_CHECKING:
    import torch

Key = tuple[object, ...]
KeyFunction = Callable[..., Key]


def key_function(op: OperationForm) -> KeyFunction:
    """Return a function from a call's arguments, tensors before scalars, to the key of the call.

    The last eight bits of all addresses together say how they are aligned. Strides matter only in a tensor that isn't
    contiguous. A subclass of a tensor is no tensor: its type is part of the key. So is whether an operand that is
    written in place shares memory with another one.
    """
    count = len(op.inputs)
    plain = _WRITTEN_OUT.get(count) or _of_tensors(count)
    return _with_overlap(op, plain) if op.updates else plain


def _of_one(a: "torch.Tensor", *scalars: object) -> Key:
    laid_out = a.is_contiguous() or a.stride()
    return (a.shape, a.dtype, type(a), a.get_device(), laid_out, a.data_ptr() & LOW_BITS, *scalars)


def _of_two(a: "torch.Tensor", b: "torch.Tensor", *scalars: object) -> Key:
    return (
        *(a.shape, a.dtype, type(a), a.get_device(), a.is_contiguous() or a.stride()),
        *(b.shape, b.dtype, type(b), b.get_device(), b.is_contiguous() or b.stride()),
        (a.data_ptr() | b.data_ptr()) & LOW_BITS,
        *scalars,
    )


def _of_three(a: "torch.Tensor", b: "torch.Tensor", c: "torch.Tensor", *scalars: object) -> Key:
    return (
        *(a.shape, a.dtype, type(a), a.get_device(), a.is_contiguous() or a.stride()),
        *(b.shape, b.dtype, type(b), b.get_device(), b.is_contiguous() or b.stride()),
        *(c.shape, c.dtype, type(c), c.get_device(), c.is_contiguous() or c.stride()),
        (a.data_ptr() | b.data_ptr() | c.data_ptr()) & LOW_BITS,
        *scalars,
    )


_WRITTEN_OUT: dict[int, KeyFunction] = {1: _of_one, 2: _of_two, 3: _of_three}
"""Number of tensors -> key function. Most operations have so few, and a loop over them takes half as long again."""


def _of_tensors(count: int) -> KeyFunction:
    """Return the key function of calls with this many tensors."""

    def key(*arguments: Any) -> Key:  # Any: torch checked the schema
        together, parts = 0, arguments[count:]
        for one in arguments[:count]:
            together |= one.data_ptr()
            parts += (one.shape, one.dtype, type(one), one.get_device(), one.is_contiguous() or one.stride())
        return (*parts, together & LOW_BITS)

    return key


def _with_overlap(op: OperationForm, plain: KeyFunction) -> KeyFunction:
    """Return a key function that also names an operand which shares memory although it is written in place."""
    overlap, count = find_overlap(op), len(op.inputs)

    def key(*arguments: Any) -> Key:  # Any: torch checked the schema
        return (*plain(*arguments), overlap(arguments[:count]))

    return key
