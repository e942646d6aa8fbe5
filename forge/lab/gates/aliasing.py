"""Does each call return memory of its own, so that a caller who keeps an output keeps its values?

The last outputs, of a few numbers each, are kept while the next gates ask at other shapes.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from forge.domain.operation import InputKind
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.difference import equal
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import largest_row, rows_within
from forge.lab.observed import Observed

KEPT: dict[InputKind, int] = {"normal": 33, "zeros": 2}
"""How many calls of each kind: more than buffers are usually handed out in turn. Where an operand is zero, the answer
may be an operand: returning it is wrong. The last two normal questions are the first one again: answers that are
equal are still new memory."""
MANY = (150, 300)
"""Calls of a few numbers each, between these by lot: buffers that are handed out in turn are counted in bytes or by
tens."""
FEW_ROWS, FEW_COLUMNS = (2, 5), 16
"""Rows, drawn, and columns of the smallest calls: most kernels take this width whole, and others are asked later."""
LARGE, LARGE_ELEMENTS = 4, 2**18
"""Calls of the public shape, or of so many rows that an operand has so many elements, and of a few rows more: large
outputs may have buffers of their own. (An interpreter takes minutes for so many rows.)"""
MORE_ROWS = (1, 31)
"""By lot, of the second large shape."""


def examine(kernel: LoadedKernel) -> Finding:
    """Make several calls, and read their outputs only when all have been made."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    shape = {**kernel.shape, rows: min(4, kernel.shape[rows])}
    more = 1 if kernel.interpreted else LARGE_ELEMENTS // largest_row(kernel.operation, kernel.shape)
    large = {**shape, rows: rows_within(kernel.operation, kernel.shape, max(kernel.shape[rows], more))}
    larger = {**large, rows: large[rows] + kernel.rng.randint(*MORE_ROWS)}
    tiny = {**shape, rows: kernel.rng.randint(*FEW_ROWS), reduced: FEW_COLUMNS}
    many = kernel.rng.randint(*MANY)
    kept = 0
    series: list[tuple[Mapping[str, int], InputKind, int]] = [(shape, kind, count) for kind, count in KEPT.items()]
    series += [(one, "normal", LARGE) for one in ((large,) if kernel.interpreted else (large, larger))]
    for asked, kind, count in (*series, (tiny, "normal", many)):
        fitting = _fitting(kernel, asked, count)
        cases = [kernel.case(asked, kind) for _ in range(fitting)]
        observed = kernel.call([*cases[:-2], cases[0], cases[0]] if fitting > 2 else cases, retain=True)
        if isinstance(observed, Failed):
            return observed
        for position, one in enumerate(observed):
            wrong = kernel.wrong(one) if kind == "normal" else kernel.judge(one)[1]
            if wrong is not None:
                return _explained(kernel, wrong, one, observed[position + 1 :])
        kept += fitting
    return Passed(
        observed=f"{kept} outputs kept and intact, none of them an input's memory",
        threshold="every output keeps its values",
    )


def _fitting(kernel: LoadedKernel, shape: Mapping[str, int], count: int) -> int:
    while count > 1 and not kernel.fits(shape, count):
        count //= 2
    return count


def _explained(kernel: LoadedKernel, wrong: Failed, kept: Observed, later: Sequence[Observed]) -> Failed:
    """An answer that is a later one's, bit for bit, was overwritten, where it is right there."""
    if not any(equal(kept, one) and kernel.judge(one)[1] is None for one in later):
        return wrong
    message = f"an output was overwritten by a later call: {wrong.reason.message}"
    return dataclasses.replace(wrong, reason=Reason(code="STATE_CARRIED", message=message))


ALIASING = Gate(name="aliasing", examine=examine, runs_early=True)
