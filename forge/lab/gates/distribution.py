"""Counts many draws from one row: do they come as often as the weights say?

The judge checks each draw by itself as well. This module tests them together, on fresh random numbers of the host. It
also asks the smallest and the largest random number, which chance hardly ever draws: a kernel whose cumulative sum
ends below one fails there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forge.domain.tensors import Chance
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.judge import chance_of
from forge.lab.observed import Case
from forge.operations.operation import Drawn

if TYPE_CHECKING:
    import torch

DRAWS = 16384
"""Number of draws from one row. Each of 128 positions is then expected 128 times on average."""
POSITIONS = 128
"""Width of the row, at most. In a row this short most positions are expected often enough to be counted on their
own."""
FALSE_ALARM = 1e-9
"""Probability that an honest kernel is refused, for each row that is asked. Chosen; a million verifications of two
rows each refuse an honest kernel with a chance of 0.2 %."""
ROWS_ASKED = 2
"""Number of rows whose draws are counted. Chosen; each costs a call of `DRAWS` rows."""
ROWS_AT_EXTREMES = 64
"""Number of different rows that are drawn with the largest and the smallest random number, half of them with each.
Chosen; each costs one row of one call."""
FEW_ROWS, LONG_ROWS = (2, 31), (16_385, 40_000)
"""Ranges of the rows and of the columns that are drawn so, too: small batches, and vocabularies of models."""
LARGEST_BELOW_ONE = 1 - 2.0**-24
"""Largest fp32 number below one."""
THRESHOLD = f"counts no further from the distribution than chance brings them in all but one of {1 / FALSE_ALARM:.0e}"
"""Words for what the gate allows."""


def is_drawn(kernel: LoadedKernel) -> bool:
    """Return whether random numbers among the inputs decide the operation's answers."""
    return any(isinstance(spec.values, Chance) for spec in kernel.operation.inputs)


def examine_distribution(kernel: LoadedKernel) -> str | Failed:
    """Draw many times from each of a few rows; return the result in words, or the refusal."""
    for shape in _shapes_at_extremes(kernel):
        checked = kernel.check([_extremes_case(kernel, shape)])
        if isinstance(checked, Failed):
            return checked
    least = 1.0
    for _ in range(ROWS_ASKED):
        case = _repeated_row_case(kernel)
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
        return _refusal(least)
    return f"{ROWS_ASKED} x {DRAWS} draws counted, G-test's smallest p {least:.2g}"


def _shapes_at_extremes(kernel: LoadedKernel) -> Sequence[Mapping[str, int]]:
    """Return shapes with some rows, one, few, and few long ones: kernels have ways of their own there."""
    rows, reduced, rng = kernel.operation.row_axis, kernel.operation.reduced_axis, kernel.rng
    shapes = [{**kernel.shape, rows: count} for count in (ROWS_AT_EXTREMES, 1, rng.randint(*FEW_ROWS))]
    if kernel.runner.takes_large_shapes:
        shapes.append({**kernel.shape, rows: rng.randint(*FEW_ROWS), reduced: rng.randint(*LONG_ROWS)})
    return kernel.shapes(*shapes)


def _extremes_case(kernel: LoadedKernel, shape: Mapping[str, int]) -> Case:
    """Return a case with different rows, in which the largest number and zero alternate as random numbers."""
    case = kernel.case(shape)
    inputs = tuple(
        _alternating_extremes(tensor) if isinstance(spec.values, Chance) else tensor
        for spec, tensor in zip(kernel.operation.inputs, case.inputs, strict=True)
    )
    return dataclasses.replace(case, inputs=inputs)


def _alternating_extremes(tensor: torch.Tensor) -> torch.Tensor:
    numbers = tensor.clone().reshape(-1)
    numbers[::2], numbers[1::2] = LARGEST_BELOW_ONE, 0.0
    return numbers.reshape(tensor.shape)


def _repeated_row_case(kernel: LoadedKernel) -> Case:
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


def _refusal(chance: float) -> Failed:
    message = f"draws from one row don't have its distribution: a G-test finds them with a chance of {chance:.3g}"
    return Failed(
        reason=Reason(code="INCORRECT_NUMERICAL", message=message), observed=f"p = {chance:.3g}", threshold=THRESHOLD
    )
