"""Is it correct for values that are large, tiny, shifted, sparse, far apart, in order, equal, or all zero?"""

from collections.abc import Mapping, Sequence

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import END_KINDS, InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.gates.sizes import other_shapes, wide_rows
from forge.lab.inputs.shape_budget import affordable, odd_width
from forge.lab.observed import Case

KINDS: tuple[InputKind, ...] = (
    *("large", "small", "tiny", "offset_mean", "offset_operands", "outlier_channel", "rows_apart"),
    *("sparse", "single", "padded", "ordered", "heavy_tails", "ties", "constant", "zeros", "zero_rows"),
    "weights_near_one",
)
"""Kinds of values that the gate asks."""
MORE_SHIFTED: tuple[InputKind, ...] = ("offset_operands",) * 4
"""Kinds that are asked again at the odd width, since a random sign decides to which side the weights are shifted."""
SCALAR_DIVISOR = 1024.0
"""Divisor of the scalars beside small values. Other gates only enlarge scalars, so they never show a lower limit on
one."""
NEAR_BOUND, MOST_NEAR = 0.25, 3
"""Share of the bound from which on a kind is asked again in many rows, and the number of kinds that are, at most.
A sum in one accumulator comes near it with a run of outliers in front, and passes it in one row of a few hundred."""
MANY_ROWS, MOST_AGAIN = 2048, 2**23
"""Number of rows in which a kind is asked that came near the bound, and of elements of rows times width, at most. A
benchmark asks as many rows at the public width, and is no place to find a wrong answer first."""
NEARER, WIDER = 0.7, 8
"""Share of the bound in many rows from which on a wider row is asked, and the factor by which it is wider, but no
wider than the gate `sizes` asks. An error that grows with the width, where the bound grows with its square root, is
beyond the bound there in every row."""
ROWS = 10
"""Number of rows at the odd width: enough for every pattern of a kind with both signs."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge one draw of each kind at the public shape, and small values with smaller scalars and with zero scalars.

    Then judge each kind in a few rows of odd width, since other code often handles the last elements. At last judge
    many rows of the kinds that came near the bound.
    """
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    odd = affordable(kernel.operation, {**kernel.shape, rows: ROWS, reduced: odd_width(kernel.rng)}, kernel.shape)
    smaller = tuple(value / SCALAR_DIVISOR for value in kernel.operation.scalars.values())
    kinds = kernel.definition.kinds((*KINDS, *END_KINDS))
    cases = (
        *kernel.cases(kernel.shape, kinds),
        *_with_scalars(kernel, smaller),
        *(kernel.case(shape, kind) for shape in other_shapes(kernel, odd) for kind in (*kinds, *MORE_SHIFTED)),
        *_with_scalars(kernel, (0.0,) * len(smaller)),
    )
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = kernel.check_alone(case)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    again = _near_ones_again(kernel, errors)
    if isinstance(again, Failed):
        return again
    errors += again
    worst = max((e.bound_used for e in errors), default=0.0)
    names = ", ".join(kinds) or "none"
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(cases)} draws of {len(kinds)} kinds of values: {names}",
        threshold="1 x the bound for every kind",
        errors=tuple(errors),
    )


def _near_ones_again(kernel: LoadedKernel, errors: Sequence[WorkloadErrors]) -> tuple[WorkloadErrors, ...] | Failed:
    """Judge many rows of each kind that came near the bound at the public shape, then a wider row if they do too.

    Only operations with results in fp32 are asked so. Results of fewer bits come near the bound by their last
    rounding, and hide how a sum errs.
    """
    fine = any(spec.rounded_to(kernel.dtype) == "fp32" for spec in kernel.operation.returned)
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    many = min(MANY_ROWS, MOST_AGAIN // max(1, kernel.shape[reduced]))
    if not fine or not kernel.runner.takes_large_shapes or many <= kernel.shape[rows]:
        return ()
    used = {e.inputs: 0.0 for e in errors}
    for error in errors:
        if error.shape == kernel.shape:
            used[error.inputs] = max(used[error.inputs], error.bound_used)
    known = kernel.definition.kinds((*KINDS, *END_KINDS))
    near = sorted((kind for kind in known if used.get(kind, 0.0) >= NEAR_BOUND), key=lambda kind: -used[kind])
    found: list[WorkloadErrors] = []
    for kind in near[:MOST_NEAR]:
        checked = _ask_harder(kernel, kind, {**kernel.shape, rows: many})
        if not isinstance(checked, Failed) and max((e.bound_used for e in checked), default=0.0) >= NEARER:
            width = min(WIDER * kernel.shape[reduced], max(wide_rows(kernel.operation)))
            if width > kernel.shape[reduced]:
                checked = _ask_harder(kernel, kind, {**kernel.shape, rows: ROWS, reduced: width})
        if isinstance(checked, Failed):
            return checked
        found += checked
    return tuple(found)


def _ask_harder(
    kernel: LoadedKernel, kind: InputKind, wanted: Mapping[str, int]
) -> tuple[WorkloadErrors, ...] | Failed:
    """Judge one draw of a kind at a shape, if the operation and the candidate's domain have it."""
    for shape in other_shapes(kernel, affordable(kernel.operation, wanted, kernel.shape)):
        return kernel.check_alone(kernel.case(shape, kind))
    return ()


def _with_scalars(kernel: LoadedKernel, scalars: tuple[float, ...]) -> list[Case]:
    """Return small values with these scalars. A kernel must not take zero for a missing scalar."""
    return [kernel.case(kernel.shape, "small", scalars=scalars)] if scalars else []


SCALES = Gate(name="scales", examine=examine, one_call_shows_it=True)
