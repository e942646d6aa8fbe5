"""Does each call return memory of its own, so that a caller who keeps an output keeps its values?"""

import dataclasses

from forge.domain.verdict import Reason
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe

KEPT = 4


def examine(probe: Probe) -> Finding:
    """Make several calls, and read their outputs only when all have been made."""
    shape = {**probe.shape, probe.operation.row_axis: min(4, probe.shape[probe.operation.row_axis])}
    checked = probe.check([probe.case(shape) for _ in range(KEPT)], retain=True)
    if isinstance(checked, Failed):
        if checked.reason.code != "INCORRECT_NUMERICAL":
            return checked
        message = f"an output was overwritten by a later call: {checked.reason.message}"
        return dataclasses.replace(checked, reason=Reason(code="STATE_CARRIED", message=message))
    return Passed(observed=f"{KEPT} outputs kept and intact", threshold="every output keeps its values")


ALIASING = Gate(name="aliasing", examine=examine)
