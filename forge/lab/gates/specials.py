"""Are NaN and infinities where the reference has them, and nowhere else?

One special value, a whole row of them, or what a mask leaves of a row, in each operand in turn; rows without stay
right. Subnormal numbers are asked as well: they may be taken for zeros, and for nothing else. (Not of an interpreter:
Triton's gets bf16's wrong.)
"""

import itertools
from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import InputKind
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe
from forge.lab.room import narrowed, odd_width
from forge.lab.special_rows import patterns_for

KINDS: tuple[InputKind, ...] = ("special_rows", "special_weights", "subnormal")
THRESHOLD = "NaN and infinities as the reference has them, finite elements within the bound"


def examine(probe: Probe) -> Finding:
    """Judge each kind at the public width, an odd one and one, with rows for every pattern in every operand.

    Weights are finite at width one: there a norm's other factor is zero but for rounding, and infinity times that is
    NaN or infinite as rounding goes.
    """
    if probe.operation.specials == "unspecified":
        return Passed(observed="the contract leaves NaN and infinities open: not asked", threshold=THRESHOLD)
    kinds = tuple(kind for kind in KINDS if not (probe.interpreted and kind == "subnormal"))
    errors: list[WorkloadErrors] = []
    for shape, kind in itertools.product(_shapes(probe), kinds):
        if kind == "special_weights" and shape[probe.operation.reduced_axis] == 1:
            continue
        checked = probe.check([probe.case(shape, kind)])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    left_out = "; subnormal numbers not asked of an interpreter" if probe.interpreted else ""
    return Passed(
        observed=f"{len(errors)} calls as the reference{left_out}", threshold=THRESHOLD, errors=tuple(errors)
    )


def _shapes(probe: Probe) -> tuple[Mapping[str, int], ...]:
    operation = probe.operation
    rows = {**probe.shape, operation.row_axis: len(operation.activations) * len(patterns_for(operation)) + 1}
    shapes = (rows, {**rows, operation.reduced_axis: odd_width()}, {**rows, operation.reduced_axis: 1})
    return tuple(narrowed(operation, shape) for shape in shapes)


SPECIALS = Gate(name="specials", examine=examine)
