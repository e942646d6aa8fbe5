"""Many draws from one row, counted: do they come as often as the weights say?

Each draw is judged by itself as well; here they are taken together, over numbers that the host drew anew. And what
chance hardly ever draws is asked: the smallest and the largest number, where sums that end below one run out.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from forge.domain.operation import Drawn
from forge.domain.tensors import Chance
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.judge import chance_of
from forge.lab.observed import Case

if TYPE_CHECKING:
    import torch

DRAWS = 16384
POSITIONS = 128
"""At most, so that most are expected often enough to be counted by themselves."""
FALSE_ALARM = 1e-9
"""An honest kernel is refused with this chance, at every row that is asked."""
ROWS_ASKED = 2
ROWS_AT_THE_ENDS = 64
LARGEST_CHANCE = 1 - 2.0**-24
"""In fp32, of the numbers below one."""
THRESHOLD = f"counts no further from the distribution than chance brings them in all but one of {1 / FALSE_ALARM:.0e}"


def is_drawn(kernel: LoadedKernel) -> bool:
    """Whether the operation's answers are drawn by numbers that are given."""
    return any(isinstance(spec.values, Chance) for spec in kernel.operation.inputs)


def examine_distribution(kernel: LoadedKernel) -> str | Failed:
    """Draw many times from each of a few rows; in words what came of it."""
    ends = kernel.check([_at_the_ends(kernel)])
    if isinstance(ends, Failed):
        return ends
    least = 1.0
    for _ in range(ROWS_ASKED):
        case = _one_row_again_and_again(kernel)
        called = kernel.call([case])
        if isinstance(called, Failed):
            return called
        wrong = kernel.judge(called[0])[1]
        if wrong is not None:
            return wrong
        for position, expected in enumerate(kernel.expected(case)[0]):
            if isinstance(expected, Drawn):
                least = min(least, chance_of(called[0].outputs[position], expected.weights[0]))
    if not least >= FALSE_ALARM:
        return _beyond(least)
    return f"{ROWS_ASKED} x {DRAWS} draws counted, G-test's smallest p {least:.2g}"


def _at_the_ends(kernel: LoadedKernel) -> Case:
    """Different rows, drawn by the largest number and by zero in turn."""
    case = kernel.case({**kernel.shape, kernel.operation.row_axis: ROWS_AT_THE_ENDS})
    inputs = tuple(
        _ends(tensor) if isinstance(spec.values, Chance) else tensor
        for spec, tensor in zip(kernel.operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def _ends(tensor: torch.Tensor) -> torch.Tensor:
    ends = tensor.clone().reshape(-1)
    ends[::2], ends[1::2] = LARGEST_CHANCE, 0.0
    return ends.reshape(tensor.shape)


def _one_row_again_and_again(kernel: LoadedKernel) -> Case:
    operation = kernel.operation
    width = min(POSITIONS, kernel.shape[operation.reduced_axis])
    case = kernel.case({**kernel.shape, operation.row_axis: DRAWS, operation.reduced_axis: width})
    inputs = tuple(
        tensor
        if isinstance(spec.values, Chance) or operation.row_axis not in spec.axes
        else tensor.narrow(spec.axes.index(operation.row_axis), 0, 1).expand_as(tensor).contiguous()
        for spec, tensor in zip(operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def _beyond(chance: float) -> Failed:
    message = f"draws from one row don't have its distribution: a G-test finds them with a chance of {chance:.3g}"
    return Failed(
        reason=Reason(code="INCORRECT_NUMERICAL", message=message), observed=f"p = {chance:.3g}", threshold=THRESHOLD
    )
