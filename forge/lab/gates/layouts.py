"""Does it take its inputs however the contract lets them lie, and as it claims to beyond that?

By contract an input may begin at any element of its storage, at any address that is aligned to an element.
Powers of two in between tell a kernel that needs 16 or 32 bytes from one that checks for less.
"""

from __future__ import annotations

import dataclasses
import itertools

from forge.domain.tensors import LayoutName
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.observed import Case
from forge.lab.placement import Placement
from forge.lab.probe import Probe

ELEMENTS_IN = (1, 2, 4, 8)


def examine(probe: Probe) -> Finding:
    """Ask in each layout, at the public shape and at a small one."""
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    shapes = (probe.shape, {**probe.shape, rows: 3, reduced: 33}, {**probe.shape, rows: 1, reduced: 5})
    layouts: tuple[LayoutName, ...] = tuple(dict.fromkeys((*probe.operation.layouts, *probe.claimed)))
    for layout in layouts:
        for shape, placement in itertools.product(shapes, _placements(layout)):
            checked = probe.check([_suited(probe, probe.case(shape), layout)], placement=placement)
            if isinstance(checked, Failed):
                return _in_layout(checked, layout)
    claimed = f"; claimed: {', '.join(probe.claimed)}" if probe.claimed else "; none claimed beyond the contract"
    return Passed(
        observed=f"right in {', '.join(layouts)}{claimed}", threshold="every layout of the contract and of the claim"
    )


def _placements(layout: LayoutName) -> tuple[Placement, ...]:
    if layout != "offset":
        return (Placement(layout=layout),)
    return tuple(Placement(layout=layout, elements_in=count) for count in ELEMENTS_IN)


def _suited(probe: Probe, case: Case, layout: LayoutName) -> Case:
    """In an expanded layout one row's values are every row's."""
    if layout != "expanded":
        return case
    inputs = []
    for spec, tensor in zip(probe.operation.inputs, case.inputs, strict=True):
        if len(spec.axes) < 2 or probe.operation.row_axis not in spec.axes:
            inputs.append(tensor)
        else:
            first = tensor.narrow(spec.axes.index(probe.operation.row_axis), 0, 1)
            inputs.append(first.expand_as(tensor))
    return dataclasses.replace(case, inputs=tuple(inputs))


def _in_layout(failed: Failed, layout: LayoutName) -> Failed:
    message = f"with inputs laid out {layout}: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


LAYOUTS = Gate(name="layouts", examine=examine)
