"""Runs beside hostile code. Says where tensors lie in memory, and whether a launcher's tensors could lie there."""

import ctypes
from collections.abc import Iterable, Sequence

import torch

from . import wire

Tensors = Sequence[torch.Tensor]


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return address and size in bytes of a dense tensor."""
    return tensor.data_ptr(), tensor.numel() * tensor.element_size()


def lie_apart(outputs: Tensors, inputs: Tensors) -> bool:
    """Return whether results are dense and in separate memory, as a launcher's are.

    A reference file's results needn't be.
    """
    if not all(tensor.is_contiguous() for tensor in outputs):
        return False
    spans = [span(tensor) for tensor in outputs if tensor.numel()]
    others = [span(tensor) for tensor in inputs if tensor.numel()]
    return not any(
        _overlap(one, other) for place, one in enumerate(spans) for other in (*spans[place + 1 :], *others)
    )


def fresh(outputs: Sequence[Tensors], others: Tensors) -> list[torch.Tensor]:
    """Return the dense outputs that share no memory with the others.

    A reference file may return an input or a constant.
    """
    known = {one.untyped_storage().data_ptr() for one in others}
    dense = (one for taken in outputs for one in taken if one.is_contiguous())
    return [one for one in dense if one.untyped_storage().data_ptr() not in known]


def memory_status(outputs: Sequence[object], inputs: Tensors, earlier: Sequence[object], *, apart: bool) -> int:
    """Return the status of a call whose outputs must lie in memory of their own.

    They may not lie in the memory of an input or of an earlier output; with `apart`, nor in that of each other.
    """
    if _begin_in(outputs, inputs):
        return wire.ALIASES_AN_INPUT
    for place, output in enumerate(outputs):
        beside = (*outputs[:place], *outputs[place + 1 :]) if apart else ()
        if _begin_in((output,), (*earlier, *beside)):
            return wire.ALIASES_AN_OUTPUT
    return wire.DONE


def _begin_in(outputs: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether an output begins inside the memory of another tensor."""
    spans = [(one.data_ptr(), one.data_ptr() + one.nbytes) for one in others if isinstance(one, torch.Tensor)]
    begins = [output.data_ptr() for output in outputs if isinstance(output, torch.Tensor) and output.numel()]
    return any(start <= begin < end for begin in begins for start, end in spans)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]


def ends(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the addresses of a tensor's first and last byte; it has elements, and any strides."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (steps + 1) * tensor.element_size() - 1


def write_to_ends(outputs: Iterable[object]) -> None:
    """Write the first and the last byte of each output again, as a caller may write to its memory."""
    for one in outputs:
        if isinstance(one, torch.Tensor) and one.device.type == "cpu" and one.numel():
            for at in ends(one):
                byte = ctypes.c_ubyte.from_address(at)
                byte.value = byte.value
