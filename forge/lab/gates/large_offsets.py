"""Calls a kernel with an operand past 2^31 bytes, where a signed 32-bit offset overflows.

Only the rows that show an overflow are judged. The call is made only on a device, whose arena has the address space,
and only if the memory is there. A smaller draw is repeated to fill the rows.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping

from forge.domain.relation import RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, TensorSpec
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.inputs.shape_budget import MOST_DRAWN, largest_row
from forge.lab.observed import Case, Observed
from forge.operations.operation import Operation

BOUNDARY_BYTES = 2**31
"""Offset in bytes at which a signed 32-bit offset overflows."""
ROWS_DRAWN = (1021, 127, 13)
"""Numbers of rows that may be drawn; the first one that is drawn quickly is used. They are prime, so that the
distance between a row and its copy isn't a multiple of a power of two."""
BEYOND_ROWS = 64
"""Number of rows behind the boundary."""
HOST_COPIES = 4
"""Number of copies of all operands that the host's memory must hold: the arena, the drawn values, the values read
back, and a reserve."""


def rows_stand_for_all(operation: Operation) -> bool:
    """Return whether a few rows of a call can stand for all: each is independent of the others and of its place."""
    relations = operation.relations
    return not operation.updates and RowsIndependent() in relations and RowsPermuted() in relations


def ask(kernel: LoadedKernel) -> str | Failed:
    """Make the call, or say why it isn't made; return the result in words, or the refusal."""
    if kernel.device == "cpu":
        return "past 2^31 bytes not asked on a CPU (memory)"
    if not rows_stand_for_all(kernel.operation):
        return "past 2^31 bytes not asked (a few rows can't stand for all)"
    boundary = BOUNDARY_BYTES // max(_row_bytes(kernel, spec) for spec in kernel.operation.inputs)
    shape = {**kernel.shape, kernel.operation.row_axis: boundary + BEYOND_ROWS}
    if not kernel.fits(shape, 1) or not _host_has(HOST_COPIES * kernel.operation.operand_bytes(shape, kernel.dtype)):
        return "past 2^31 bytes not asked (memory)"
    case = repeated(kernel, shape, rows_drawn(kernel.operation, shape))
    observed = kernel.call([case])
    if isinstance(observed, Failed):
        return observed
    rows = shape[kernel.operation.row_axis]
    chosen = [0, 1, boundary // 2, *range(boundary - 3, boundary + 4), rows - 2, rows - 1]
    wrong = kernel.judge(only_rows(kernel, observed[0], chosen))[1]
    if wrong is None:
        return f"{rows} rows, an operand past 2^31 bytes, right around the boundary"
    return _of_whole_call(wrong, rows)


def _of_whole_call(wrong: Failed, rows: int) -> Failed:
    """Return the failure as one of the whole call, without a counterexample.

    The few judged rows alone don't reproduce it.
    """
    message = f"among {rows} rows, an operand past 2^31 bytes: {wrong.reason.message}"
    reason = wrong.reason.model_copy(update={"message": message})
    return dataclasses.replace(wrong, reason=reason, counterexample=None, case=None)


def _row_bytes(kernel: LoadedKernel, spec: TensorSpec) -> int:
    """Return the bytes that one row adds to an operand; 0 if the operand has no row axis."""
    if kernel.operation.row_axis not in spec.axes:
        return 0
    element_bytes = ITEMSIZE_BYTES[spec.element_type(kernel.dtype)]
    return math.prod((element_bytes, *spec.sizes({**kernel.shape, kernel.operation.row_axis: 1})))


def rows_drawn(operation: Operation, shape: Mapping[str, int]) -> int:
    """Return how many rows are drawn; the others repeat them."""
    row = largest_row(operation, shape)
    return next((count for count in ROWS_DRAWN if count * row <= MOST_DRAWN), ROWS_DRAWN[-1])


def _host_has(size_bytes: int) -> bool:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE") > size_bytes


def repeated(kernel: LoadedKernel, shape: dict[str, int], count: int) -> Case:
    """Return a case with `count` drawn rows that repeat until the shape is full."""
    import torch

    rows = kernel.operation.row_axis
    drawn = kernel.case({**shape, rows: count})
    index = torch.arange(shape[rows]) % count
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
