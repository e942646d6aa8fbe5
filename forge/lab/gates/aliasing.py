"""Does each call return memory of its own, so that a caller who keeps an output keeps its values?

Small outputs of this gate's last calls stay in memory while the next gates ask at other shapes.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from forge.domain.input_kind import InputKind
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.difference import equal
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import largest_row, rows_within
from forge.lab.observed import Observed

CALLS_OF_KIND: dict[InputKind, int] = {"normal": 33, "zeros": 2}
"""Number of calls for each kind of values, more than the slots of most ring buffers. If one operand is zero, the
answer may equal the other operand, but returning that operand is wrong. The last two normal questions repeat the
first one: equal answers still need separate memory."""
SMALL_CALLS_RANGE = (259, 300)
"""Range of a number of small calls whose outputs are kept, drawn at random. Ring buffers in real kernels have up to
256 slots; the last two calls repeat the first one."""
SMALL_ROWS_RANGE = (2, 3)
"""Range of the number of rows of the small calls, drawn at random. Chosen; up to 300 outputs are kept, so each row
costs 300 rows of memory, and an interpreter 300 programs."""
SMALL_COLUMNS = 16
"""Number of columns of the small calls. Most kernels process this width in one piece; other gates ask wider rows."""
LARGE_CALLS = 4
"""Number of calls at each large shape, and where kernels often go another way, since other buffers may be used there.
Chosen; every output is kept in memory."""
LARGE_ELEMENTS = 2**18
"""Number of elements in an operand of the large calls, if the public shape has fewer. An interpreter keeps the public
shape, since such a call takes it minutes."""
EXTRA_ROWS_RANGE = (1, 31)
"""Range of the number of rows that the second large shape has beyond the first, drawn at random. A buffer that was
made for the first shape is then too small."""
Series = tuple[Mapping[str, int], InputKind, int]
"""Calls whose outputs are kept together: their shape, their kind of values, and their number."""


def examine(kernel: LoadedKernel) -> Finding:
    """Make several calls, and read their outputs only after the last call."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    shape = {**kernel.shape, rows: min(4, kernel.shape[rows])}
    takes_more = kernel.runner.takes_large_shapes
    more = LARGE_ELEMENTS // largest_row(kernel.operation, kernel.shape) if takes_more else 1
    large = {**shape, rows: rows_within(kernel.operation, kernel.shape, max(kernel.shape[rows], more))}
    larger = {**large, rows: large[rows] + kernel.rng.randint(*EXTRA_ROWS_RANGE)}
    tiny = {**shape, rows: kernel.rng.randint(*SMALL_ROWS_RANGE), reduced: SMALL_COLUMNS}
    many = kernel.rng.randint(*SMALL_CALLS_RANGE)
    kept = 0
    series: list[Series] = [
        (shape, kind, CALLS_OF_KIND[kind]) for kind in kernel.definition.kinds(tuple(CALLS_OF_KIND))
    ]
    others = other_paths.shapes(kernel)
    series += [(one, "normal", LARGE_CALLS) for one in (large, *((larger,) if takes_more else ()), *others)]
    for asked, kind, count in _defined(kernel, [*series, (tiny, "normal", many)]):
        fitting = _calls_that_fit(kernel, asked, count)
        cases = [kernel.case(asked, kind) for _ in range(fitting)]
        observed = kernel.call([*cases[:-2], cases[0], cases[0]] if fitting > 2 else cases, retain=True)
        if isinstance(observed, Failed):
            return observed
        for position, one in enumerate(observed):
            wrong = kernel.wrong(one)
            if wrong is not None:
                return _overwritten_or_wrong(kernel, wrong, one, observed[position + 1 :])
        kept += fitting
    return Passed(
        observed=f"{kept} outputs kept and intact, none of them an input's memory",
        threshold="every output keeps its values",
    )


def _defined(kernel: LoadedKernel, series: Sequence[Series]) -> Iterator[Series]:
    """Yield the series at shapes where the operation is defined, but each shape with each kind only once."""
    seen: list[tuple[Mapping[str, int], InputKind]] = []
    for wanted, kind, count in series:
        (shape,) = kernel.shapes(wanted)
        if (shape, kind) not in seen:
            seen.append((shape, kind))
            yield shape, kind, count


def _calls_that_fit(kernel: LoadedKernel, shape: Mapping[str, int], count: int) -> int:
    count = kernel.definition.kept_calls(count, kernel.operation.operand_bytes(shape, kernel.dtype))
    while count > 1 and not kernel.fits(shape, count):
        count //= 2
    return count


def _overwritten_or_wrong(kernel: LoadedKernel, wrong: Failed, kept: Observed, later: Sequence[Observed]) -> Failed:
    """Say that a later call overwrote the output, if the output equals a later, correct answer bit for bit."""
    if not any(equal(kept, one) and kernel.judge(one)[1] is None for one in later):
        return wrong
    message = f"an output was overwritten by a later call: {wrong.reason.message}"
    return dataclasses.replace(wrong, reason=Reason(code="STATE_CARRIED", message=message))


ALIASING = Gate(name="aliasing", examine=examine, runs_early=True)
