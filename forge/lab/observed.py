"""One call that was made and watched, and where its tensors are judged."""

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
"""From here on an operand is judged on the device, where this process has one."""


@dataclass(frozen=True)
class Case:
    """One call to be made: operands, scalars, and how they were drawn."""

    shape: Mapping[str, int]
    kind: InputKind
    seed: int
    inputs: tuple[torch.Tensor, ...]
    scalars: tuple[float, ...]


@dataclass(frozen=True)
class Observed:
    """One call that was made and watched."""

    case: Case
    outputs: tuple[torch.Tensor, ...]
    elapsed_ns: int
    """Nanoseconds of the whole release that this call was part of."""


def rotated(cases: Sequence[Case], place: int, rotation_offset: int, still: AbstractSet[int] = frozenset()) -> Case:
    """What stands at a place once contents have moved on by `rotation_offset`, as forge/guest/clock.py moves them.

    Inputs at the places `still` aren't turned within.
    """
    case = cases[(place + rotation_offset) % len(cases)]
    turned = [
        tensor
        if position in still
        else tensor.view(-1).roll(_element_shift(rotation_offset, position, tensor.numel())).view_as(tensor)
        for position, tensor in enumerate(case.inputs)
    ]
    return replace(case, inputs=tuple(turned))


def _element_shift(rotation_offset: int, position: int, elements: int) -> int:
    """The guest's own rule, once more on this side of the wall."""
    return (rotation_offset * 40503 + position * 7919) % elements if rotation_offset and elements else 0


def beside_the_oracle(observed: Observed, device: Literal["cpu", "cuda"]) -> Observed:
    """The call with its tensors where the oracle computes: large ones on the GPU, if we see it.

    The process is this one, and so is the mathematics in fp64; no candidate's memory is in its context.
    """
    case = observed.case
    largest = max((tensor.numel() for tensor in case.inputs), default=0)
    if device == "cpu" or largest < ON_DEVICE_ELEMENTS or not _sees_a_gpu():
        return observed
    inputs = tuple(tensor.to("cuda") for tensor in case.inputs)
    outputs = tuple(tensor.to("cuda") for tensor in observed.outputs)
    return replace(observed, case=replace(case, inputs=inputs), outputs=outputs)


@cache
def _sees_a_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def equal_tensors(outputs: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...]) -> bool:
    """Whether all outputs have the same shapes and values; fp8 tensors know `==` alone."""
    return all(
        one.shape == other.shape and bool((one == other).all()) for one, other in zip(outputs, others, strict=True)
    )


def flushed(tensor: torch.Tensor) -> torch.Tensor:
    """Subnormal numbers taken for zeros."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    return torch.where(tensor.abs() < torch.finfo(tensor.dtype).smallest_normal, 0.0, tensor)
