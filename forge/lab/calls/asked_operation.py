"""Defines what a loaded kernel is asked, and by what its answers are judged."""

from collections.abc import Mapping
from dataclasses import dataclass

from forge.domain.policy import Policy
from forge.domain.tensors import ClaimableLayout, DType
from forge.lab.inputs.inside import Inside
from forge.lab.runner import PROCESSOR, Runner
from forge.operations.operation import Operation


@dataclass(frozen=True, kw_only=True)
class AskedOperation:
    """An operation as one kernel is asked: at which shapes, in which type, by which policy, and on what."""

    operation: Operation
    shape: Mapping[str, int]
    """The public shape."""
    dtype: DType
    policy: Policy
    runner: Runner = PROCESSOR
    held_out: tuple[Mapping[str, int], ...] = ()
    """Shapes that the author wasn't told."""
    claimed: tuple[ClaimableLayout, ...] = ()
    """Layouts that the author claims beyond the operation's."""
    inside: Inside | None = None
    """Shapes that the kernel may be asked. None: all at which the operation is defined."""
