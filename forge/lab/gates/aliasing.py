"""Does each call return memory of its own, so that a caller who keeps an output keeps its values?"""

import dataclasses
from collections.abc import Mapping, Sequence

from forge.domain.operation import InputKind
from forge.domain.verdict import Reason
from forge.lab.apart import equal
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.observed import Observed
from forge.lab.probe import Probe

KEPT: dict[InputKind, int] = {"normal": 33, "zeros": 1}
"""How many calls of each kind: more than buffers are usually handed out in turn. Where an operand is zero, the answer
may be an operand: returning it is wrong. The last two normal questions are the first one again: answers that are
equal are still new memory."""


def examine(probe: Probe) -> Finding:
    """Make several calls, and read their outputs only when all have been made."""
    shape = {**probe.shape, probe.operation.row_axis: min(4, probe.shape[probe.operation.row_axis])}
    kept = {kind: _fitting(probe, shape, count) for kind, count in KEPT.items()}
    for kind, count in kept.items():
        cases = [probe.case(shape, kind) for _ in range(count)]
        observed = probe.call([*cases[:-2], cases[0], cases[0]] if count > 2 else cases, retain=True)
        if isinstance(observed, Failed):
            return observed
        for position, one in enumerate(observed):
            wrong = probe.judge(one)[1]
            if wrong is not None:
                return _explained(wrong, one, observed[position + 1 :])
    return Passed(
        observed=f"{sum(kept.values())} outputs kept and intact, none of them an input's memory",
        threshold="every output keeps its values",
    )


def _fitting(probe: Probe, shape: Mapping[str, int], count: int) -> int:
    while count > 1 and not probe.fits(shape, count):
        count //= 2
    return count


def _explained(wrong: Failed, kept: Observed, later: Sequence[Observed]) -> Failed:
    """An answer that is a later one's, bit for bit, was overwritten."""
    if not any(equal(kept, one) for one in later):
        return wrong
    message = f"an output was overwritten by a later call: {wrong.reason.message}"
    return dataclasses.replace(wrong, reason=Reason(code="STATE_CARRIED", message=message))


ALIASING = Gate(name="aliasing", examine=examine)
