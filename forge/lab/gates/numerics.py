"""Is every element within the bound, on fresh values at the public shape?"""

from forge.domain.evidence import WorkloadErrors
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe

DRAWS = 3


def examine(probe: Probe) -> Finding:
    """Judge normal and uniform inputs, several draws of each."""
    cases = [probe.case(probe.shape, kind) for _ in range(DRAWS) for kind in ("normal", "uniform")]
    errors: list[WorkloadErrors] = []
    for case in cases:
        checked = probe.check([case])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(cases)} draws",
        threshold="1 x the bound, every element",
        errors=tuple(errors),
    )


NUMERICS = Gate(name="numerics", examine=examine)
