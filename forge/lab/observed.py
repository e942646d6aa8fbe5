"""Holds one observed call, and moves its tensors to the device on which they are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from forge.domain.input_kind import InputKind

if TYPE_CHECKING:
    import torch

ON_DEVICE_ELEMENTS = 2**14
"""Number of elements from which on an operand is judged on the GPU, if this process has one. They take 64 KiB in
fp32. Chosen; a smaller number costs more copies to the GPU."""


@dataclass(frozen=True)
class Case:
    """One call to make: operands, scalars, and how they were drawn."""

    shape: Mapping[str, int]
    kind: InputKind
    seed: int
    inputs: tuple[torch.Tensor, ...]
    scalars: tuple[float, ...]


@dataclass(frozen=True)
class Observed:
    """One call that was made and checked."""

    case: Case
    outputs: tuple[torch.Tensor, ...]
    elapsed_ns: int
    """Nanoseconds of the whole release that this call was part of."""


def rotated(cases: Sequence[Case], place: int, rotation_offset: int, still: AbstractSet[int] = frozenset()) -> Case:
    """Return the case at `place` after a rotation by `rotation_offset`, as forge/guest/clock.py rotates contents.

    Inputs at the positions in `still` keep their element order.
    """
    case = cases[(place + rotation_offset) % len(cases)]
    rotated_inputs = [
        tensor
        if position in still
        else tensor.view(-1).roll(_element_shift(rotation_offset, position, tensor.numel())).view_as(tensor)
        for position, tensor in enumerate(case.inputs)
    ]
    return replace(case, inputs=tuple(rotated_inputs))


def _element_shift(rotation_offset: int, position: int, elements: int) -> int:
    """Return the guest's element shift, computed independently on this side of the wall."""
    return (rotation_offset * 40503 + position * 7919) % elements if rotation_offset and elements else 0


_on_device_from = ON_DEVICE_ELEMENTS


def judge_on_device_from(elements: int) -> None:
    """Let this process judge operands on the GPU from this number of elements on."""
    global _on_device_from  # noqa: PLW0603 (one number for all judgements of a process)
    _on_device_from = elements


def for_oracle(observed: Observed, device: Literal["cpu", "cuda"]) -> Observed:
    """Return the call with its tensors where the oracle computes: large ones on the GPU, if this process sees one.

    This process makes the fp64 computation; no candidate's memory is in its context.
    """
    case = observed.case
    largest = max((tensor.numel() for tensor in case.inputs), default=0)
    if device == "cpu" or largest < _on_device_from or not _sees_a_gpu():
        return observed
    inputs = tuple(tensor.to("cuda") for tensor in case.inputs)
    outputs = tuple(tensor.to("cuda") for tensor in observed.outputs)
    return replace(observed, case=replace(case, inputs=inputs), outputs=outputs)


@cache
def _sees_a_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def equal_tensors(outputs: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...]) -> bool:
    """Return whether all outputs have the same shapes and values; fp8 tensors support only `==`."""
    return all(
        one.shape == other.shape and bool((one == other).all()) for one, other in zip(outputs, others, strict=True)
    )


def flushed(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, with the same sizes, with subnormal numbers replaced by zeros.

    No processor replaces those of fp8.
    """
    import torch

    if not tensor.is_floating_point() or tensor.itemsize == 1:
        return tensor
    return torch.where(tensor.abs() < torch.finfo(tensor.dtype).smallest_normal, 0.0, tensor)
