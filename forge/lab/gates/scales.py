"""Is it correct for values that are large, tiny, shifted, sparse, far apart, in order, equal, mixed, or all zero?"""

from collections.abc import Mapping
from functools import partial

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import REFERENCE_KINDS, InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import configurations, finiteness, other_paths
from forge.lab.gates.gate import Gate
from forge.lab.gates.sizes import other_shapes
from forge.lab.inputs.changes import shifted_further
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.shape_budget import affordable, largest_row, odd_width
from forge.lab.observed import Case

KINDS: tuple[InputKind, ...] = (
    *("large", "small", "tiny", "offset_mean", "offset_operands", "outlier_channel", "rows_apart"),
    *("sparse", "single", "padded", "ordered", "heavy_tails", "ties", "constant", "zeros", "zero_rows"),
    *("weights_near_one", "zero_weights", "equal_weights", "mixed", "equal_operands"),
)
"""Kinds of values that the gate asks."""
ASKED_AGAIN: tuple[InputKind, ...] = (*("offset_operands",) * 4, *("ordered",) * 4)
"""Kinds that are asked again at the odd width: chance decides to which side weights are shifted, and if they rise."""
ON_ANOTHER_PATH_AGAIN: tuple[InputKind, ...] = (*("ordered",) * 3, "equal_weights")
"""Kinds that are asked again where a kernel may go another way. Chance decides how far apart like numbers lie, and
which number all weights are."""
FURTHER = 2
"""Number of questions at the odd width whose rows are shifted further. Chosen: half of the rows are on each side."""
INTERPRETED_KINDS: tuple[InputKind, ...] = ("rows_apart", "small", "offset_mean", "mixed")
"""Kinds that an interpreter is asked where a kernel may go another way. Rows there differ in size and in sign. A
lost eps shows in some of them, and a zero taken for a maximum in others."""
MIXED_EACH, INTERPRETED_MIXED = 3, 4
"""Numbers of draws of mixed values at each width natively, and in all in an interpreter. A pattern that one draw in
twenty has is missed by 96 draws with a chance of 0.7 %; each draw costs a small call."""
TILE, MOST_TILES = 32, 16
"""Number of elements of which mixed values have every remainder in their width, and of whole tiles before it, at
most. A loop's last elements may be wrong after one remainder; vectors of up to 32 elements divide it."""
SQUARE_SIZES = (4, 17)
"""Range of the size of all axes in one question with equal operands: matrices of all kinds are then alike."""
SCALAR_DIVISOR = 1024.0
"""Divisor of the scalars beside small values. Other gates only enlarge scalars, so they never show a lower limit on
one."""
SCALAR_POWERS = ((1, 5), (6, 16))
"""Two ranges of a power of two by which scalars are multiplied where a kernel may go another way; they take turns. An
eps of 1e-6 becomes 2e-6 to 0.07, between the values that other gates ask. A usual one is 1e-5."""
COLUMNS: tuple[InputKind, ...] = ("large_columns",)
"""Kinds that need many rows, because each column is large in one row alone."""
LARGE_IN_A_ROW, MOST_COLUMN_ELEMENTS, MOST_INTERPRETED_ELEMENTS = 8, 2**21, 2**15
"""Number of columns that are large in one row, and the most elements in such an operand, natively and in
an interpreter. Wider rows have more large columns each, so a missing one shows less."""
COLUMN_WIDTHS = (1024, 4096)
"""Range from which one width of such rows is drawn; a smaller public width wouldn't show what wide rows leave out."""
TOGETHER = 8
"""Number of calls in one release where all kinds are asked at one shape. A release costs as much as some calls."""
ROWS = 10
"""Number of rows at the odd width: enough for every pattern of a kind with both signs."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge one draw of each kind at the public shape, and small values with smaller scalars, with zero and with one.

    Then judge each kind in a few rows of odd width, since other code often handles the last elements. Judge also rows
    in which each column is large once. Last, judge each kind in long rows and in many rows.
    """
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    odd = affordable(kernel.operation, {**kernel.shape, rows: ROWS, reduced: odd_width(kernel.rng)}, kernel.shape)
    kinds = kernel.definition.kinds((*KINDS, *REFERENCE_KINDS))
    errors: list[WorkloadErrors] = []
    for case in _cases(kernel, kinds, odd):
        checked = kernel.check_alone(case)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    others = [
        partial(_on_another_path, kernel, shape, kinds, SCALAR_POWERS[number % 2])
        for number, shape in enumerate(other_paths.shapes(kernel))
    ]
    tuned = (partial(_with_each_configuration, kernel, kinds, shape) for shape in (kernel.shape, odd))
    for ask in (*tuned, partial(_mixed, kernel), *others):
        checked = ask()
        if isinstance(checked, Failed):
            return checked
        errors += checked
    finite = finiteness.ask(kernel)
    if isinstance(finite, Failed):
        return finite
    worst = max((e.bound_used for e in errors), default=0.0)
    names = f"{', '.join(kinds) or 'none'}{f'; finite at {finite} more' if finite else ''}"
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(errors)} draws of {len(kinds)} kinds of values: {names}",
        threshold="1 x the bound for every kind",
        errors=tuple(errors),
    )


def _cases(kernel: LoadedKernel, kinds: tuple[InputKind, ...], odd: Mapping[str, int]) -> list[Case]:
    """Return what is asked alone: each kind at the public shape and at the odd width, other scalars, and columns."""
    smaller = tuple(value / SCALAR_DIVISOR for value in kernel.operation.scalars.values())
    return [
        *kernel.cases(kernel.shape, kinds),
        *_with_scalars(kernel, smaller),
        *(kernel.case(shape, kind) for shape in other_shapes(kernel, odd) for kind in (*kinds, *ASKED_AGAIN)),
        *(case for shape in other_shapes(kernel, odd) for case in _shifted_further(kernel, shape)),
        *(case for scalar in (0.0, 1.0) for case in _with_scalars(kernel, (scalar,) * len(smaller))),
        *(kernel.case(shape, kind) for shape in _column_shapes(kernel) for kind in kernel.definition.kinds(COLUMNS)),
    ]


def _with_each_configuration(
    kernel: LoadedKernel, kinds: tuple[InputKind, ...], shape: Mapping[str, int]
) -> tuple[WorkloadErrors, ...] | Failed:
    return configurations.ask_each(kernel, [partial(kernel.case, shape, kind) for kind in kinds])


def _shifted_further(kernel: LoadedKernel, shape: Mapping[str, int]) -> list[Case]:
    """Return rows that are shifted from zero, each by another distance."""
    shifted = [kernel.case(shape, "offset_operands") for _ in range(FURTHER)]
    return [shifted_further(kernel.operation, case, kernel.rng) for case in shifted]


def _on_another_path(
    kernel: LoadedKernel, shape: Mapping[str, int], kinds: tuple[InputKind, ...], powers: tuple[int, int]
) -> tuple[WorkloadErrors, ...] | Failed:
    """Judge each kind at the shape, some in one release; then small values with other scalars.

    An interpreter is asked a few kinds, and no other scalars.
    """
    if not kernel.runner.takes_large_shapes:
        few = kernel.definition.kinds(INTERPRETED_KINDS)
        return _check_releases(kernel, _together([kernel.case(shape, kind) for kind in few]))
    scalars = tuple(kernel.operation.scalars.values())
    larger = tuple(value * 2.0 ** kernel.rng.randint(*powers) for value in scalars)
    again = tuple(kind for kind in ON_ANOTHER_PATH_AGAIN if kind in kinds)
    together = _together([kernel.case(shape, kind) for kind in (*kinds, *again)])
    alone = [
        [kernel.case(shape, "small", scalars=values)]
        for values in (larger, tuple(value / SCALAR_DIVISOR for value in scalars), (0.0,) * len(scalars))
        if values
    ]
    return _check_releases(kernel, [*together, *alone])


def _mixed(kernel: LoadedKernel) -> tuple[WorkloadErrors, ...] | Failed:
    """Judge mixed values at widths with every remainder of a tile, and equal operands where all axes are equal."""
    if not kernel.definition.kinds(("mixed",)):
        return ()
    rng = kernel.rng
    remainders = range(TILE) if kernel.runner.takes_large_shapes else (rng.randrange(TILE),)
    count = MIXED_EACH if kernel.runner.takes_large_shapes else INTERPRETED_MIXED
    releases = []
    for remainder in remainders:
        width = TILE * rng.randint(1, MOST_TILES) + remainder
        shape = other_paths.quick_shape(kernel, rng.randint(1, ROWS), width)
        releases.append([kernel.case(shape, "mixed") for _ in range(count)])
    square = kernel.shapes(dict.fromkeys(kernel.shape, log_uniform(rng, *SQUARE_SIZES)))
    return _check_releases(kernel, [*releases, [kernel.case(shape, "equal_operands") for shape in square]])


def _together(cases: list[Case]) -> list[list[Case]]:
    return [cases[first : first + TOGETHER] for first in range(0, len(cases), TOGETHER)]


def _check_releases(kernel: LoadedKernel, releases: list[list[Case]]) -> tuple[WorkloadErrors, ...] | Failed:
    errors: list[WorkloadErrors] = []
    for cases in releases:
        kernel.tuner.choose_at_random(kernel.rng)
        checked = kernel.check(cases)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    return tuple(errors)


def _column_shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return the public width and one drawn wide one, each with as many rows as `LARGE_IN_A_ROW` asks and fit."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    wide = log_uniform(kernel.rng, *COLUMN_WIDTHS) if kernel.runner.takes_large_shapes else kernel.shape[reduced]
    shapes = []
    for width in {kernel.shape[reduced], wide}:
        shape = {**kernel.shape, reduced: width}
        most = MOST_COLUMN_ELEMENTS if kernel.runner.takes_large_shapes else MOST_INTERPRETED_ELEMENTS
        fitting = max(1, min(-(-width // LARGE_IN_A_ROW), most // largest_row(kernel.operation, shape)))
        shapes.append(affordable(kernel.operation, {**shape, rows: fitting}, kernel.shape))
    return list(kernel.shapes(*shapes))


def _with_scalars(kernel: LoadedKernel, scalars: tuple[float, ...]) -> list[Case]:
    """Return small values with these scalars. A kernel must not take zero or one for a missing scalar."""
    return [kernel.case(kernel.shape, "small", scalars=scalars)] if scalars else []


SCALES = Gate(name="scales", examine=examine, one_call_shows_it=True, runs_early=True, beside=True)
