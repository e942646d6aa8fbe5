"""Calls a kernel with an operand past 2^31 elements or bytes, where a signed 32-bit offset overflows.

Only the rows that show an overflow are judged. The call is made only on a device, whose arena has the address space,
and only if the memory is there. A smaller draw is repeated to fill the rows.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Literal

from forge.domain.input_kind import InputKind
from forge.domain.relation import RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, TensorSpec
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.inputs.shape_budget import MOST_DRAWN, largest_row
from forge.lab.observed import Case, Observed
from forge.operations.operation import Operation

Unit = Literal["bytes", "elements"]
BOUNDARY = 2**31
"""Offset at which a signed 32-bit offset overflows, in bytes or in elements."""
BYTES: Unit = "bytes"
"""Unit of offsets that count bytes."""
ELEMENTS: Unit = "elements"
"""Unit of offsets that count elements."""
ROWS_DRAWN = (1021, 127, 13)
"""Numbers of rows that may be drawn; the first one that is drawn quickly is used. They are prime, so that the
distance between a row and its copy isn't a multiple of a power of two."""
BEYOND_ROWS = 64
"""Number of rows behind the boundary. Chosen; more rows take more of the device's memory."""
HOST_COPIES = 4
"""Number of copies of all operands that the host's memory must hold: the arena, the drawn values, the values read
back, and a reserve."""


def rows_stand_for_all(operation: Operation) -> bool:
    """Return whether a few rows of a call can stand for all: each is independent of the others and of its place."""
    relations = operation.relations
    return not operation.updates and RowsIndependent() in relations and RowsPermuted() in relations


def ask(kernel: LoadedKernel) -> str | Failed:
    """Make the call past 2^31 elements, or past 2^31 bytes if the memory doesn't hold more.

    Return in words what was asked, or why it wasn't, or the refusal.
    """
    if not kernel.runner.takes_large_shapes:
        return "large shapes not asked of an interpreter"
    if not kernel.runner.reaches_past_2_gib:
        return "past 2^31 bytes not asked on a CPU (memory)"
    if not rows_stand_for_all(kernel.operation):
        return "past 2^31 bytes not asked (a few rows can't stand for all)"
    why = "memory"
    for unit in (ELEMENTS, BYTES):
        shape = shape_beyond(kernel, unit)
        if shape is not None:
            if kernel.inside.contains(shape):
                return answer_at(kernel, shape)
            why = "the domain ends before"
    return f"past 2^31 bytes not asked ({why})"


def shape_beyond(kernel: LoadedKernel, unit: Unit) -> dict[str, int] | None:
    """Return a shape with an operand past the boundary; None if memory doesn't hold it.

    Its rows are a size of the domain, if the domain has one beyond the boundary.
    """
    if not rows_stand_for_all(kernel.operation):
        return None
    rows = _boundary_row(kernel, unit) + BEYOND_ROWS
    if kernel.inside.domain is not None:
        row_sizes = kernel.inside.domain.sizes_of(kernel.operation.row_axis)
        rows = max(rows, row_sizes.at_least(rows))
    shape = {**kernel.shape, kernel.operation.row_axis: rows}
    needed = HOST_COPIES * kernel.operation.operand_bytes(shape, kernel.dtype)
    return shape if kernel.fits(shape, 1) and _host_has(needed) else None


def answer_at(kernel: LoadedKernel, shape: dict[str, int]) -> str | Failed:
    """Make one call with many rows, and judge those around every boundary that an operand passes."""
    case = repeated(kernel, shape, rows_drawn(kernel.operation, shape))
    observed = kernel.call([case])
    if isinstance(observed, Failed):
        return observed
    rows = shape[kernel.operation.row_axis]
    boundaries = [_boundary_row(kernel, unit) for unit in (BYTES, ELEMENTS)]
    around = {row for boundary in boundaries for row in (boundary // 2, *range(boundary - 3, boundary + 4))}
    chosen = sorted(row for row in {0, 1, *around, rows - 2, rows - 1} if row < rows)
    wrong = kernel.judge(only_rows(kernel, observed[0], chosen))[1]
    passed = "elements" if boundaries[1] < rows else "bytes"
    if wrong is None:
        return f"{rows} rows, an operand past 2^31 {passed}, right around the boundary"
    return _of_whole_call(wrong, rows, passed)


def _boundary_row(kernel: LoadedKernel, unit: Unit) -> int:
    """Return the first row that isn't wholly before the boundary, in the operand with the longest rows."""
    return BOUNDARY // max(_row_size(kernel, spec, unit) for spec in kernel.operation.inputs)


def _of_whole_call(wrong: Failed, rows: int, passed: str) -> Failed:
    """Return the failure as one of the whole call, without a counterexample.

    The few judged rows alone don't reproduce it.
    """
    message = f"among {rows} rows, an operand past 2^31 {passed}: {wrong.reason.message}"
    reason = wrong.reason.model_copy(update={"message": message})
    return dataclasses.replace(wrong, reason=reason, counterexample=None, case=None)


def _row_size(kernel: LoadedKernel, spec: TensorSpec, unit: Unit) -> int:
    """Return the bytes or elements that one row adds to an operand; 0 if the operand has no row axis."""
    if kernel.operation.row_axis not in spec.axes:
        return 0
    each = ITEMSIZE_BYTES[spec.element_type(kernel.dtype)] if unit == "bytes" else 1
    return math.prod((each, *spec.sizes({**kernel.shape, kernel.operation.row_axis: 1})))


def rows_drawn(operation: Operation, shape: Mapping[str, int]) -> int:
    """Return how many rows are drawn; the others repeat them."""
    row = largest_row(operation, shape)
    return next((count for count in ROWS_DRAWN if count * row <= MOST_DRAWN), ROWS_DRAWN[-1])


def _host_has(size_bytes: int) -> bool:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE") > size_bytes


def repeated(kernel: LoadedKernel, shape: dict[str, int], count: int, kind: InputKind = "normal") -> Case:
    """Return a case with `count` drawn rows of a kind that repeat until the shape is full."""
    import torch

    rows = kernel.operation.row_axis
    drawn = kernel.case({**shape, rows: count}, kind)
    index = torch.arange(shape[rows]) % drawn.shape[rows]
    inputs = tuple(
        tensor.index_select(spec.axes.index(rows), index) if rows in spec.axes else tensor
        for spec, tensor in zip(kernel.operation.inputs, drawn.inputs, strict=True)
    )
    return dataclasses.replace(drawn, shape=shape, inputs=inputs)


def only_rows(kernel: LoadedKernel, observed: Observed, chosen: list[int]) -> Observed:
    """Return the call as if it had been made with only the chosen rows."""
    import torch

    operation, rows = kernel.operation, kernel.operation.row_axis
    index = torch.tensor(chosen)
    inputs, outputs = (
        tuple(
            tensor.index_select(spec.axes.index(rows), index) if rows in spec.axes else tensor
            for spec, tensor in zip(specs, tensors, strict=True)
        )
        for specs, tensors in ((operation.inputs, observed.case.inputs), (operation.outputs, observed.outputs))
    )
    shape = {**observed.case.shape, rows: len(chosen)}
    return Observed(dataclasses.replace(observed.case, shape=shape, inputs=inputs), outputs, observed.elapsed_ns)
