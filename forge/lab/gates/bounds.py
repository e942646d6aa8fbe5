"""Does it stay inside its operands: inputs as they were, not a byte written between them?

Every call of every gate is watched for this; here operands of odd size end flush with their red zones.
"""

from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe


def examine(probe: Probe) -> Finding:
    """Call at sizes that leave no slack behind the last element, then report on all calls so far."""
    for reduced in (13, 1001):
        shape = {**probe.shape, probe.operation.row_axis: 3, probe.operation.reduced_axis: reduced}
        checked = probe.check([probe.case(shape) for _ in range(2)])
        if isinstance(checked, Failed):
            return checked
    return Passed(
        observed=f"{probe.calls} calls: inputs and red zones untouched",
        threshold="no byte outside the outputs",
    )


BOUNDS = Gate(name="bounds", examine=examine)
