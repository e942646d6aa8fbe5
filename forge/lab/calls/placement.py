"""Decides how the operands of a call lie in memory: layout, alignment, and which pages around them are closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from forge.domain.tensors import DType, LayoutName, TensorSpec
from forge.operations.operation import Operation
from forge.sandbox.arena import (
    Closed,
    Form,
    How,
    Slot,
    SlotSet,
    Together,
    closed_after,
    closed_before,
    closed_to_writing,
    contiguous_strides,
)

Pages = Literal["open", "closed_after", "closed_before", "read_only"]


@dataclass(frozen=True)
class Placement:
    """Where the inputs of a call lie; outputs are always contiguous, between red zones."""

    layout: LayoutName = "contiguous"
    pages: Pages = "open"
    elements_in: int = 1
    """Number of elements before each input in its storage, in the layout `offset`."""
    gaps: tuple[int, int] = (5, 0)
    """Numbers of elements after each row and of rows after each matrix of three axes, in the layout `strided_rows`.
    Beside an even width, an odd number of elements puts every second row at an odd element."""
    outer_gap: int = 0
    """Number of elements after each piece of the first of three axes or more, in the layout `strided_rows`. A
    request's keys in a longer cache have such a gap, and so have queries in packed rows."""
    only: str | None = None
    """Name of the one input that has the layout while the others are contiguous; None if all have it."""
    one_tensor: tuple[str, str] | None = None
    """Names of two inputs that are one tensor, in order; their contents must be the same. None: all are apart."""
    halves: tuple[str, str] | None = None
    """Names of two inputs of one form that are halves of one tensor, in order. In the layout `strided_rows` each row
    is cut in halves; otherwise the tensor is. None: no two inputs are halves."""
    far: frozenset[str] = frozenset()
    """Names of inputs that lie more than 2^32 bytes from the others, on a CPU."""
    return_inputs: bool = False
    """Whether a device's copies of the inputs come back to be compared."""

    def form(self, operation: Operation, spec: TensorSpec, shape: Mapping[str, int], dtype: DType) -> Form:
        """Return the sizes, strides and place of one input in the arena."""
        sizes, element = spec.sizes(shape), spec.element_type(dtype)
        if self.pages == "closed_after":
            return Form(sizes, element, begins="ends_at_page")
        if self.only not in (None, spec.name) or (self.halves is not None and spec.name in self.halves):
            return Form(sizes, element)
        if self.layout == "offset":
            return Form(sizes, element, begins="elements_in", elements_in=self.elements_in)
        if not can_have_layouts(operation, spec):
            return Form(sizes, element)
        return Form(sizes, element, strides=self._strides(sizes, spec.axes.index(operation.row_axis)))

    def _strides(self, sizes: tuple[int, ...], row_axis: int) -> tuple[int, ...]:
        match self.layout:
            case "contiguous" | "offset":
                return contiguous_strides(sizes)
            case "strided_rows":
                after_row, after_rows = self.gaps
                rows = (sizes[-2] + after_rows,) if len(sizes) > 2 else sizes[-2:-1]
                first, *others = contiguous_strides((*sizes[:-2], *rows, sizes[-1] + after_row))
                return (first + self.outer_gap * (len(sizes) > 2), *others)
            case "transposed":
                transposed = contiguous_strides((*sizes[:-2], sizes[-1], sizes[-2]))
                return (*transposed[:-2], transposed[-1], transposed[-2])
            case "expanded":
                once = contiguous_strides((*sizes[:row_axis], *sizes[row_axis + 1 :]))
                return (*once[:row_axis], 0, *once[row_axis:])
            case _:
                assert_never(self.layout)

    def together(self, operation: Operation) -> Together | None:
        """Return which two inputs lie in one piece of memory, and how."""
        two = self.one_tensor or self.halves
        if two is None:
            return None
        names = [spec.name for spec in operation.inputs]
        halves: How = "row_by_row" if self.layout == "strided_rows" else "one_after_the_other"
        return Together(names.index(two[0]), names.index(two[1]), "one_place" if self.one_tensor else halves)

    def far_positions(self, operation: Operation) -> frozenset[int]:
        """Return the positions of the inputs that lie far from the others."""
        return frozenset(place for place, spec in enumerate(operation.inputs) if spec.name in self.far)

    def closed(self, operation: Operation, sets: Sequence[SlotSet], arena_bytes: int) -> tuple[Closed, ...]:
        """Return the pages that a guest's harness closes. Pages of updated inputs stay open to writing."""
        match self.pages:
            case "open":
                return ()
            case "closed_after":
                return closed_after(sets, arena_bytes)
            case "closed_before":
                return closed_before(sets)
            case "read_only":
                return closed_to_writing([_without_updated(operation, one) for one in sets])
            case _:
                assert_never(self.pages)


def output_slots(operation: Operation, slots: SlotSet) -> tuple[Slot, ...]:
    """Return where the outputs are read, in the operation's order; updated inputs are read in their own place."""
    places = dict(zip((spec.name for spec in operation.inputs), slots.inputs, strict=True))
    places |= dict(zip((spec.name for spec in operation.returned), slots.outputs, strict=True))
    return tuple(places[spec.name] for spec in operation.outputs)


def _without_updated(operation: Operation, slots: SlotSet) -> SlotSet:
    kept = (
        slot for spec, slot in zip(operation.inputs, slots.inputs, strict=True) if spec.name not in operation.updates
    )
    return SlotSet(tuple(kept), slots.outputs)


def can_have_layouts(operation: Operation, spec: TensorSpec) -> bool:
    """Return whether an input can have another layout than contiguous: it needs a row axis and at least two axes."""
    return len(spec.axes) >= 2 and operation.row_axis in spec.axes


PLAIN = Placement()
"""Placement of contiguous inputs with all pages open."""
