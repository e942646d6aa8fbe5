"""Does it hold for values that are large, tiny, shifted, sparse, far apart, in order, equal, or all zero?"""

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import InputKind
from forge.lab.calls.loaded_candidate import Probe
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


def examine(probe: Probe) -> Finding:
    """Judge one draw of each kind at the public shape, and small values with smaller scalars and with zeros too.

    Then each kind in a few rows of odd width: what handles the last elements is often other code.
    """
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    odd = affordable(probe.operation, {**probe.shape, rows: ROWS, reduced: odd_width(probe.lot)}, probe.shape)
    smaller = tuple(value / SMALLER for value in probe.operation.scalars.values())
    cases = (
        *probe.cases(probe.shape, KINDS),
        probe.case(probe.shape, "small", scalars=smaller),
        *(probe.case(odd, kind) for kind in (*KINDS, *SHIFTED)),
        *_without_scalars(probe),
    )
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = probe.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(KINDS)} kinds of values at two widths, one with other scalars",
        threshold="1 x the bound for every kind",
        errors=tuple(errors),
    )


def _without_scalars(probe: Probe) -> list[Case]:
    """Small values where every scalar is zero, which isn't the same as left out."""
    zeros = (0.0,) * len(probe.operation.scalars)
    return [probe.case(probe.shape, "small", scalars=zeros)] if zeros else []


SCALES = Gate(name="scales", examine=examine)
