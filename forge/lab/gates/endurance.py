"""Is every answer of a long row of calls right? A count that runs over, or every thousandth call, shows nowhere else.

All answers are read: those that are one answer, bit for bit, are judged once. The row comes before all other rows of
calls, so that a count over the whole process runs over where answers are read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.observed import Observed

if TYPE_CHECKING:
    import torch

GOALS = (65_537, 10_001, 1_001)
"""Calls in all, one more than counts usually run to: the first that fits into the time."""
FIRST, FIRSTS, AT_ONCE = 64, 3, 4096
"""Calls of the first releases, how many of these say by the fastest what a call takes, and calls of later ones; each
release has new contents."""
MOST_S = 4.0
"""Of all calls."""
MOST_BYTES = 2**24
"""Of all outputs of one release."""
ROWS, WIDTHS = 2, (8, 24)
"""Of the operands; widths are drawn."""
THRESHOLD = "1 x the bound, every answer of the row"


def examine(kernel: LoadedKernel) -> Finding:
    """Ask a small question so often, with new contents after each few thousand calls."""
    if kernel.interpreted or kernel.operation.updates:
        why = "an interpreter makes the calls" if kernel.interpreted else "each call changes what the next one gets"
        return Passed(observed=f"not asked: {why}", threshold=THRESHOLD)
    shape = dict(kernel.shape)
    if kernel.operation.own is None:
        widths = kernel.operation.reduced_axis
        shape |= {kernel.operation.row_axis: ROWS, widths: log_uniform(kernel.rng, *WIDTHS)}
    room = max(2, MOST_BYTES // max(1, _answer_bytes(kernel, shape)))
    made, goal, calls, fastest_s = 0, FIRST * FIRSTS, min(FIRST, room), math.inf
    while made < goal:
        observed = kernel.call([kernel.case(shape)], cycles=calls, retain=True)
        if isinstance(observed, Failed):
            return observed
        for answer in _distinct(observed[0]):
            wrong = kernel.judge(answer)[1]
            if wrong is not None:
                return _in_a_row(wrong)
        made += calls
        if made <= FIRST * FIRSTS:
            fastest_s = min(fastest_s, observed[0].elapsed_ns / 1e9 / calls)
        if made >= FIRST * FIRSTS:
            goal = next((count for count in GOALS if count * fastest_s <= MOST_S), made)
            calls = max(2, min(AT_ONCE, room, goal - made))
    left = "" if made >= GOALS[0] else f"; {GOALS[0]} calls not asked: they take too long"
    return Passed(observed=f"{made} calls in a row, every answer right{left}", threshold=THRESHOLD)


def _answer_bytes(kernel: LoadedKernel, shape: dict[str, int]) -> int:
    returned = kernel.operation.returned
    return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(kernel.dtype)] for spec in returned)


def _distinct(observed: Observed) -> Iterator[Observed]:
    """Each answer that is there, once."""
    import torch

    answers = torch.cat([_as_bytes(output) for output in observed.outputs], dim=1)
    others = (answers != answers[0]).any(dim=1).nonzero().flatten()
    chosen = {answers[0].numpy().tobytes(): 0}
    for place in others.tolist():
        chosen.setdefault(answers[place].numpy().tobytes(), place)
    for place in chosen.values():
        yield dataclasses.replace(observed, outputs=tuple(output[place] for output in observed.outputs))


def _as_bytes(output: torch.Tensor) -> torch.Tensor:
    import torch

    return output.contiguous().view(torch.uint8).reshape(len(output), -1)


def _in_a_row(wrong: Failed) -> Failed:
    message = f"in a long row of calls: {wrong.reason.message}"
    return dataclasses.replace(wrong, reason=wrong.reason.model_copy(update={"message": message}))


ENDURANCE = Gate(name="endurance", examine=examine)
