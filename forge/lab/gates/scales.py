"""Does it hold for values that are large, tiny, shifted, sparse, far apart, in order, equal, or all zero?"""

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import affordable, odd_width
from forge.lab.observed import Case

KINDS: tuple[InputKind, ...] = (
    *("large", "small", "tiny", "offset_mean", "offset_operands", "outlier_channel", "rows_apart"),
    *("sparse", "single", "padded", "ordered", "heavy_tails", "ties", "constant", "zeros", "zero_rows"),
    "weights_near_one",
)
SHIFTED: tuple[InputKind, ...] = ("offset_operands",) * 4
"""Once more: weights are shifted to one side or the other by lot."""
SMALLER = 1024.0
"""Of scalars, beside small values: other gates only make them larger, and a floor under one would never show."""
ROWS = 10
"""At the odd width: as many as a kind has patterns, in both signs, so that each comes in some row."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge one draw of each kind at the public shape, and small values with smaller scalars and with zeros too.

    Then each kind in a few rows of odd width: what handles the last elements is often other code.
    """
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    odd = affordable(kernel.operation, {**kernel.shape, rows: ROWS, reduced: odd_width(kernel.rng)}, kernel.shape)
    smaller = tuple(value / SMALLER for value in kernel.operation.scalars.values())
    cases = (
        *kernel.cases(kernel.shape, KINDS),
        kernel.case(kernel.shape, "small", scalars=smaller),
        *(kernel.case(odd, kind) for kind in (*KINDS, *SHIFTED)),
        *_without_scalars(kernel),
    )
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = kernel.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(KINDS)} kinds of values at two widths, one with other scalars",
        threshold="1 x the bound for every kind",
        errors=tuple(errors),
    )


def _without_scalars(kernel: LoadedKernel) -> list[Case]:
    """Small values where every scalar is zero, which isn't the same as left out."""
    zeros = (0.0,) * len(kernel.operation.scalars)
    return [kernel.case(kernel.shape, "small", scalars=zeros)] if zeros else []


SCALES = Gate(name="scales", examine=examine, one_call_shows_it=True)
