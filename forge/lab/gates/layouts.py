"""Does it take its inputs however the contract lets them lie, and as it claims to beyond that?

By contract an input may begin at any element of its storage, at any address that is aligned to an element.
Powers of two in between tell a kernel that needs 16 or 32 bytes from one that checks for less. Then each input alone
lies so: what is asked of one operand's address or strides says nothing of another's.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import assert_never

from forge.domain.tensors import LayoutName
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.observed import Case
from forge.lab.placement import Placement, has_layouts
from forge.lab.probe import Probe
from forge.lab.room import rows_within

ELEMENTS_IN = (1, 2, 4, 8)
SMALL = ((3, 64), (3, 33), (1, 5))
"""Rows and width: aligned, odd, and one row."""
MANY = ((64, 64), (65, 33))
"""Where many rows are handled by other code; of all inputs together."""
MOST_GAP = 31


def examine(probe: Probe) -> Finding:
    """Ask in each layout, at the public shape and at small ones; then of each input alone, at the small ones."""
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    small = [{**probe.shape, rows: count, reduced: width} for count, width in SMALL]
    many = [
        {**one, rows: rows_within(probe.operation, one, one[rows])}
        for one in ({**probe.shape, rows: count, reduced: width} for count, width in MANY)
    ]
    layouts: tuple[LayoutName, ...] = tuple(dict.fromkeys((*probe.operation.layouts, *probe.claimed)))
    for layout in layouts:
        asked = (
            *itertools.product((probe.shape, *small, *many), _of_all(layout)),
            *itertools.product(small, _of_one(probe, layout)),
        )
        for shape, placement in asked:
            checked = probe.check([_suited(probe, probe.case(shape), placement)], placement=placement)
            if isinstance(checked, Failed):
                return _in_layout(checked, layout)
    claimed = f"; claimed: {', '.join(probe.claimed)}" if probe.claimed else "; none claimed beyond the contract"
    return Passed(
        observed=f"right in {', '.join(layouts)}{claimed}", threshold="every layout of the contract and of the claim"
    )


def _of_all(layout: LayoutName) -> tuple[Placement, ...]:
    match layout:
        case "offset":
            return tuple(Placement(layout=layout, elements_in=count) for count in ELEMENTS_IN)
        case "strided_rows":
            gap = _odd_by_lot()
            return tuple(Placement(layout=layout, gaps=gaps) for gaps in ((gap, 0), (0, gap), (gap, _odd_by_lot())))
        case "contiguous" | "transposed" | "expanded":
            return (Placement(layout=layout),)
        case _:
            assert_never(layout)


def _of_one(probe: Probe, layout: LayoutName) -> list[Placement]:
    """Each input that can lie so, where there are others."""
    operation = probe.operation
    chosen = [spec.name for spec in operation.inputs if layout == "offset" or has_layouts(operation, spec)]
    if layout == "contiguous" or len(operation.inputs) == 1:
        return []
    gaps = (_odd_by_lot(), 0)
    return [Placement(layout=layout, elements_in=_odd_by_lot(), gaps=gaps, only=name) for name in chosen]


def _odd_by_lot() -> int:
    return 2 * random.SystemRandom().randint(0, MOST_GAP // 2) + 1


def _suited(probe: Probe, case: Case, placement: Placement) -> Case:
    """In an expanded layout one row's values are every row's."""
    if placement.layout != "expanded":
        return case
    inputs = []
    for spec, tensor in zip(probe.operation.inputs, case.inputs, strict=True):
        if placement.only not in (None, spec.name) or not has_layouts(probe.operation, spec):
            inputs.append(tensor)
        else:
            first = tensor.narrow(spec.axes.index(probe.operation.row_axis), 0, 1)
            inputs.append(first.expand_as(tensor))
    return dataclasses.replace(case, inputs=tuple(inputs))


def _in_layout(failed: Failed, layout: LayoutName) -> Failed:
    message = f"with inputs laid out {layout}: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


LAYOUTS = Gate(name="layouts", examine=examine)
