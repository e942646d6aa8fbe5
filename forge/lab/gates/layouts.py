"""Does it take its inputs however the contract lets them lie, and as it claims to beyond that?

By contract an input may begin at any element of its storage, at any address that is aligned to an element.
Powers of two in between tell a kernel that needs 16 or 32 bytes from one that checks for less. Then each input alone
lies so: what is asked of one operand's address or strides says nothing of another's.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import assert_never

from forge.domain.tensors import LayoutName
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement, has_layouts
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd, of_class
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import rows_within
from forge.lab.observed import Case

ELEMENTS_IN = (1, 2, 4, 8)
ALIGNED, ODD, ONE_ROW = (32, 256), (17, 99), (3, 13)
"""Between these, by lot, are widths: of a few rows, a multiple of 16 or odd, and of one row, odd."""
FEW, MANY = (2, 5), (40, 100)
"""Likewise numbers of rows; many are handled by other code, and asked of all inputs together."""
MOST_GAP = 31


def examine(kernel: LoadedKernel) -> Finding:
    """Ask in each layout, at the public shape and at small ones; then of each input alone, at the small ones."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    rng = kernel.rng
    widths = of_class(rng, *ALIGNED, 16, 0), odd(rng, *ODD)
    small = [{**kernel.shape, rows: rng.randint(*FEW), reduced: width} for width in widths]
    small.append({**kernel.shape, rows: 1, reduced: odd(rng, *ONE_ROW)})
    many = [
        {**one, rows: rows_within(kernel.operation, one, one[rows])}
        for one in ({**kernel.shape, rows: rng.randint(*MANY), reduced: width} for width in widths)
    ]
    layouts: tuple[LayoutName, ...] = tuple(dict.fromkeys((*kernel.operation.layouts, *kernel.claimed)))
    for layout in layouts:
        asked = (
            *itertools.product((kernel.shape, *small, *many), _of_all(layout, rng)),
            *itertools.product(small, _of_one(kernel, layout)),
        )
        for shape, placement in asked:
            checked = kernel.check([_suited(kernel, kernel.case(shape), placement)], placement=placement)
            if isinstance(checked, Failed):
                return _in_layout(checked, layout)
    claimed = f"; claimed: {', '.join(kernel.claimed)}" if kernel.claimed else "; none claimed beyond the contract"
    return Passed(
        observed=f"right in {', '.join(layouts)}{claimed}", threshold="every layout of the contract and of the claim"
    )


def _of_all(layout: LayoutName, rng: Seeded) -> tuple[Placement, ...]:
    match layout:
        case "offset":
            return tuple(Placement(layout=layout, elements_in=count) for count in ELEMENTS_IN)
        case "strided_rows":
            gap = _odd_gap(rng)
            return tuple(Placement(layout=layout, gaps=gaps) for gaps in ((gap, 0), (0, gap), (gap, _odd_gap(rng))))
        case "contiguous" | "transposed" | "expanded":
            return (Placement(layout=layout),)
        case _:
            assert_never(layout)


def _of_one(kernel: LoadedKernel, layout: LayoutName) -> list[Placement]:
    """Each input that can lie so, where there are others."""
    operation, rng = kernel.operation, kernel.rng
    chosen = [spec.name for spec in operation.inputs if layout == "offset" or has_layouts(operation, spec)]
    if layout == "contiguous" or len(operation.inputs) == 1:
        return []
    gaps = (_odd_gap(rng), 0)
    return [Placement(layout=layout, elements_in=_odd_gap(rng), gaps=gaps, only=name) for name in chosen]


def _odd_gap(rng: Seeded) -> int:
    return 2 * rng.randint(0, MOST_GAP // 2) + 1


def _suited(kernel: LoadedKernel, case: Case, placement: Placement) -> Case:
    """In an expanded layout one row's values are every row's."""
    if placement.layout != "expanded":
        return case
    inputs = []
    for spec, tensor in zip(kernel.operation.inputs, case.inputs, strict=True):
        if placement.only not in (None, spec.name) or not has_layouts(kernel.operation, spec):
            inputs.append(tensor)
        else:
            first = tensor.narrow(spec.axes.index(kernel.operation.row_axis), 0, 1)
            inputs.append(first.expand_as(tensor))
    return dataclasses.replace(case, inputs=tuple(inputs))


def _in_layout(failed: Failed, layout: LayoutName) -> Failed:
    message = f"with inputs laid out {layout}: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


LAYOUTS = Gate(name="layouts", examine=examine)
