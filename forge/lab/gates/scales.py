"""Does it hold for values that are large, tiny, shifted, sparse, constant, or all zero?"""

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import InputKind
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe

KINDS: tuple[InputKind, ...] = (
    "large",
    "small",
    "offset_mean",
    "outlier_channel",
    "sparse",
    "constant",
    "zeros",
)


def examine(probe: Probe) -> Finding:
    """Judge one draw of each kind at the public shape."""
    errors: list[WorkloadErrors] = []
    for kind in KINDS:
        checked = probe.check([probe.case(probe.shape, kind)])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(KINDS)} kinds of values",
        threshold="1 x the bound for every kind",
        errors=tuple(errors),
    )


SCALES = Gate(name="scales", examine=examine)
