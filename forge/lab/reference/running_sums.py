"""Allows what one running sum in fp32 errs by, where a reference's own error is less.

Torch sums in a tree, and its running sums on a processor in fp64. A kernel that adds one number after the other is
right too: NumPy's cumsum does so. How many numbers are added isn't known, but how many go into one result is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forge.domain.own_operation import Result
from forge.lab.reference.answers import Answers
from forge.lab.reference.binding import rounded_up
from forge.operations.operation import Expected
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

PROBES = 3
"""Number of places of each operand whose change is followed into the results. Chosen; each costs a call in fp64."""
RUNNING_SUM = 2.0**-24
"""Error of one running sum of n numbers in fp32, relative to its size and over sqrt(n). Chosen; a bound allows eight
times this. Running sums of 16 rows of 1,000 to 8,000 normal numbers used at most 0.6 of it, in 250 draws each."""
MOST_RUNNING_SUM = 2.0**-18
"""Largest such error that counts: that of 4,096 numbers. Beyond eight times it half precision would do."""
Tensors = tuple["torch.Tensor", ...]


def with_running_sums(
    results: tuple[Result, ...], answers: Answers, inputs: Tensors, expected: Sequence[Expected]
) -> tuple[Result, ...]:
    """Return the results with the error of a running sum of all numbers that go into an element, if it is larger."""
    counts = _numbers_in_each(answers, inputs, [one.value for one in expected])
    return tuple(
        one
        if one.element is not None
        else one.model_copy(
            update={"error": max(one.error, rounded_up(min(MOST_RUNNING_SUM, RUNNING_SUM * math.sqrt(count))))}
        )
        for one, count in zip(results, counts, strict=True)
    )


def _numbers_in_each(answers: Answers, inputs: Tensors, exacts: Sequence[torch.Tensor]) -> list[float]:
    """Return for each result how many of an operand's numbers go into one element, on average, at most."""
    import torch

    contract = answers.contract
    generator = torch.Generator().manual_seed(contract.seed)
    most = [0.0] * len(exacts)
    for place, one in enumerate(contract.tensors):
        if not one.continuous or not inputs[place].numel():
            continue
        changed = [0] * len(exacts)
        for _ in range(PROBES):
            to, other = torch.randint(inputs[place].numel(), (2,), generator=generator).tolist()
            moved = inputs[place].clone()
            moved.view(-1)[to] = moved.view(-1)[other]
            found = answers.asked("module_fp64", (*inputs[:place], moved, *inputs[place + 1 :]), contract.shape)
            if isinstance(found, Refused):
                return [0.0] * len(exacts)
            for which, (got, exact) in enumerate(zip(found, exacts, strict=True)):
                changed[which] += int((got.double() != exact.double().cpu()).sum())
        for which, exact in enumerate(exacts):
            share = changed[which] / PROBES / max(1, exact.numel())
            most[which] = max(most[which], share * inputs[place].numel())
    return most
