"""How the operands of a call lie in memory: layout, alignment, and which pages around them are closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from forge.domain.operation import Operation
from forge.domain.tensors import DType, LayoutName, TensorSpec
from forge.sandbox.arena import (
    Closed,
    Form,
    Slot,
    SlotSet,
    closed_after,
    closed_before,
    closed_to_writing,
    contiguous_strides,
)

GAP_ELEMENTS = 5
"""Between the rows of `strided_rows`: odd, so that no row but the first begins at an even address."""
Pages = Literal["open", "closed_after", "closed_before", "read_only"]


@dataclass(frozen=True)
class Placement:
    """Where the inputs of a call lie; outputs are always contiguous, between red zones."""

    layout: LayoutName = "contiguous"
    pages: Pages = "open"
    elements_in: int = 1
    """Where each input begins in its storage, in the layout `offset`."""
    return_inputs: bool = False
    """Whether a device's copies of the inputs come back to be compared."""

    def form(self, operation: Operation, spec: TensorSpec, shape: Mapping[str, int], dtype: DType) -> Form:
        """The form of one input."""
        sizes, element = spec.sizes(shape), spec.element_type(dtype)
        if self.pages == "closed_after":
            return Form(sizes, element, begins="ends_at_page")
        if self.layout == "offset":
            return Form(sizes, element, begins="elements_in", elements_in=self.elements_in)
        if len(sizes) < 2 or operation.row_axis not in spec.axes:
            return Form(sizes, element)
        return Form(sizes, element, strides=_strides(sizes, self.layout, spec.axes.index(operation.row_axis)))

    def closed(self, operation: Operation, sets: Sequence[SlotSet], arena_bytes: int) -> tuple[Closed, ...]:
        """Which pages a guest's harness closes; those of updated inputs can't be closed to writing."""
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
    """Where the outputs are read, in the operation's order: updated inputs where they lie."""
    places = dict(zip((spec.name for spec in operation.inputs), slots.inputs, strict=True))
    places |= dict(zip((spec.name for spec in operation.returned), slots.outputs, strict=True))
    return tuple(places[spec.name] for spec in operation.outputs)


def _without_updated(operation: Operation, slots: SlotSet) -> SlotSet:
    kept = (
        slot for spec, slot in zip(operation.inputs, slots.inputs, strict=True) if spec.name not in operation.updates
    )
    return SlotSet(tuple(kept), slots.outputs)


def _strides(sizes: tuple[int, ...], layout: LayoutName, row_axis: int) -> tuple[int, ...]:
    match layout:
        case "contiguous" | "offset":
            return contiguous_strides(sizes)
        case "strided_rows":
            return contiguous_strides((*sizes[:-1], sizes[-1] + GAP_ELEMENTS))
        case "transposed":
            turned = contiguous_strides((*sizes[:-2], sizes[-1], sizes[-2]))
            return (*turned[:-2], turned[-1], turned[-2])
        case "expanded":
            once = contiguous_strides((*sizes[:row_axis], *sizes[row_axis + 1 :]))
            return (*once[:row_axis], 0, *once[row_axis:])
        case _:
            assert_never(layout)


PLAIN = Placement()
