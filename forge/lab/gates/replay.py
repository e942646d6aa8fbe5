"""Does the answer follow the question, when the tensors are the same objects and only their content is new?

A cached answer is keyed by something: a pointer, a version, a few sampled elements, a sum. So the same storage gets
new content, then content that differs only inside a row with the row's cheap statistics kept, then a new
weight alone, a new scalar alone, and at last the first question again.
"""

import dataclasses
import random

from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.observed import Case
from forge.lab.probe import Probe

INTERIOR = 3
"""Changes inside rows, at places drawn by lot: a few samples of a row may meet one of them by chance."""


def examine(probe: Probe) -> Finding:
    """Ask related questions through the same tensors; the probe knows an earlier answer when it sees one."""
    first = probe.case(probe.shape)
    questions = (
        first,
        probe.case(probe.shape),
        *(_interior(probe, first) for _ in range(INTERIOR)),
        _weight(probe, first),
        _scalar(first),
        first,
    )
    for question in questions:
        checked = probe.check([question])
        if isinstance(checked, Failed):
            return checked
    return Passed(observed=f"{len(questions)} related questions answered afresh", threshold="every answer fresh")


def _interior(probe: Probe, case: Case) -> Case:
    """Swap two elements of each row, drawn by lot inside it: sums, norms, ends and extremes stay as they were."""
    lot = random.SystemRandom()
    inputs = []
    for spec, tensor in zip(probe.operation.inputs, case.inputs, strict=True):
        changed = tensor.clone()
        width = changed.shape[-1]
        if probe.operation.row_axis in spec.axes and width >= 2:
            inside = range(1, width - 1) if width >= 4 else range(width)
            one, other = lot.sample(inside, 2)
            changed[..., [one, other]] = changed[..., [other, one]]
        inputs.append(changed)
    return dataclasses.replace(case, inputs=tuple(inputs))


def _weight(probe: Probe, case: Case) -> Case:
    inputs = tuple(
        tensor if probe.operation.row_axis in spec.axes or not spec.follows_kind else -tensor.flip(-1)
        for spec, tensor in zip(probe.operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def _scalar(case: Case) -> Case:
    return dataclasses.replace(case, scalars=tuple(0.125 + 1000 * value for value in case.scalars))


REPLAY = Gate(name="replay", examine=examine)
