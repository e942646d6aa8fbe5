"""Asks at the operation's listed workloads, since a kernel may be correct at the public one alone.

If drawing and judging many rows takes long, the rows repeat a few drawn ones. Those are judged, and every other row
is compared with its copy among them. Rows that differ from their copies are judged as well, as many as are quickly
judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement
from forge.lab.finding import Failed
from forge.lab.gates.difference import as_words
from forge.lab.gates.kinds_in_turn import KindsInTurn
from forge.lab.gates.large_offsets import only_rows, repeated, rows_stand_for_all
from forge.lab.inputs.changes import has_patterns, unusual_patterns
from forge.lab.observed import Observed

JUDGED_ELEMENTS = 2**21
"""Number of elements in all operands up to which every row is drawn and judged. They take 8 MiB in fp32 and 16 MiB in
fp64. Chosen; a larger number costs time on the host."""
MOST_JUDGED_ELEMENTS, MOST_JUDGED_FLOPS = 2**25, 2**29
"""Numbers of elements and of floating-point operations up to which all rows are drawn and judged in any case. A few
rows can't stand for all where groups have rows, or tokens have slots. Chosen; a call at such a workload took
0.1 to 1.7 s on a processor, with its judgement."""
ROWS_DRAWN = (127, 13, 5)
"""Numbers of rows that may be drawn, all prime; the first one that is drawn quickly is used."""
ROWS_JUDGED = 24
"""Number of rows judged at random among those that differ from their copies, besides the last two rows. Chosen; each
costs one row of the oracle in fp64."""


def ask(kernel: LoadedKernel, kinds: KindsInTurn) -> str | Failed:
    """Ask at each listed workload that costs little enough, with normal values and with others where rows repeat.

    Return in words what was asked, or the refusal.
    """
    others = [
        shape
        for shape in kernel.operation.workloads
        if dict(shape) != dict(kernel.shape) and kernel.inside.contains(shape)
    ]
    asked = [shape for shape in others if _is_affordable(kernel, shape)]
    for shape in asked:
        failed = _failure_at(kernel, shape, kinds)
        if failed is not None:
            return failed
    left = f", {len(others) - len(asked)} not asked (cost)" if len(asked) < len(others) else ""
    return f"{len(asked)} other listed workloads{left}"


def _is_affordable(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    elements = _elements(kernel, shape)
    if elements > kernel.runner.most_workload_elements:
        return False
    flops = kernel.operation.flops(shape)
    if not rows_stand_for_all(kernel.operation) and (elements > MOST_JUDGED_ELEMENTS or flops > MOST_JUDGED_FLOPS):
        return False
    return flops <= kernel.runner.most_workload_flops and kernel.fits(shape, 1)


def _failure_at(kernel: LoadedKernel, shape: Mapping[str, int], kinds: KindsInTurn) -> Failed | None:
    if not repeats(kernel, shape):
        cases = [kernel.case(shape)]
        if has_patterns(kernel.operation):
            cases.append(unusual_patterns(kernel.operation, cases[0], kernel.rng))
        return next((checked for checked in map(kernel.check_alone, cases) if isinstance(checked, Failed)), None)
    checked = (check_repeated(kernel, shape, (kind,)) for kind in ("normal", kinds.at(shape)))
    return next((one for one in checked if isinstance(one, Failed)), None)


def repeats(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    """Return whether a few rows are drawn at a shape, and repeat: they stand for all, which would take long."""
    return _elements(kernel, shape) > JUDGED_ELEMENTS and rows_stand_for_all(kernel.operation)


def check_repeated(
    kernel: LoadedKernel, shape: Mapping[str, int], kinds: Sequence[InputKind], placement: Placement = PLAIN
) -> tuple[WorkloadErrors, ...] | Failed:
    """Ask a question of each kind, with a few drawn rows that repeat; keep all answers until the last call.

    Numbers that have patterns have unusual ones beside values other than normal ones. Return the largest errors of
    the judged rows of each, or the refusal.
    """
    count, row = shape[kernel.operation.row_axis], _elements(kernel, {**shape, kernel.operation.row_axis: 1})
    drawn = min(count, next((rows for rows in ROWS_DRAWN if rows * row <= JUDGED_ELEMENTS), 1))
    cases = [repeated(kernel, dict(shape), drawn, kind) for kind in kinds]
    observed = kernel.call(cases, retain=len(cases) > 1, placement=placement)
    if isinstance(observed, Failed):
        return observed
    errors: list[WorkloadErrors] = []
    for one in observed:
        measured, wrong = kernel.judge(only_rows(kernel, one, _telling_rows(kernel, one, drawn)))
        if wrong is not None:
            return wrong
        errors.append(measured.model_copy(update={"shape": dict(shape)}))
    return tuple(errors)


def _telling_rows(kernel: LoadedKernel, observed: Observed, drawn: int) -> list[int]:
    """Return the drawn rows, the last two, and some of those whose answers differ from their copies' answers."""
    count = observed.case.shape[kernel.operation.row_axis]
    unlike = _rows_unlike_their_copies(kernel, observed, drawn)
    others = kernel.rng.sample(unlike, min(ROWS_JUDGED, len(unlike)))
    return sorted({*range(drawn), max(0, count - 2), count - 1, *others})


def _rows_unlike_their_copies(kernel: LoadedKernel, observed: Observed, drawn: int) -> list[int]:
    """Return the rows whose answers differ in a bit from the answer to the same row among the first `drawn` ones."""
    import torch

    operation, count = kernel.operation, observed.case.shape[kernel.operation.row_axis]
    unlike = torch.zeros(count, dtype=torch.bool)
    for spec, output in zip(operation.outputs, observed.outputs, strict=True):
        if operation.row_axis in spec.axes:
            answers = as_words(output.movedim(spec.axes.index(operation.row_axis), 0).reshape(count, -1))
            for start in range(drawn, count, drawn):
                those, copies = answers[start : start + drawn], answers[: min(drawn, count - start)]
                if not torch.equal(those, copies):  # mostly equal, which takes a fraction of the time
                    unlike[start : start + drawn] |= (those != copies).any(dim=1)
    return [int(row) for row in unlike.nonzero().flatten()]


def _elements(kernel: LoadedKernel, shape: Mapping[str, int]) -> int:
    return sum(math.prod(spec.sizes(shape)) for spec in (*kernel.operation.inputs, *kernel.operation.returned))
