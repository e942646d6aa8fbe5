"""Does it hold for values that are large, tiny, shifted, sparse, far apart, equal to each other, or all zero?"""

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import InputKind
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe

KINDS: tuple[InputKind, ...] = (
    "large",
    "small",
    "tiny",
    "offset_mean",
    "outlier_channel",
    "sparse",
    "heavy_tails",
    "ties",
    "constant",
    "zeros",
    "zero_rows",
    "weights_near_one",
)
SMALLER = 1024.0
"""Of scalars, beside small values: other gates only make them larger, and a floor under one would never show."""


def examine(probe: Probe) -> Finding:
    """Judge one draw of each kind at the public shape, and small values once more with smaller scalars."""
    errors: list[WorkloadErrors] = []
    smaller = tuple(value / SMALLER for value in probe.operation.scalars.values())
    cases = probe.cases(probe.shape, KINDS)
    for case in (*cases, probe.case(probe.shape, "small", scalars=smaller)):
        checked = probe.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(KINDS)} kinds of values, one with smaller scalars",
        threshold="1 x the bound for every kind",
        errors=tuple(errors),
    )


SCALES = Gate(name="scales", examine=examine)
