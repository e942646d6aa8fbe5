"""Is every answer in a long series of calls correct?

A counter that overflows, or a kernel that errs in every thousandth call, shows nowhere else. The host reads all
answers; those that are equal bit for bit are judged once. A series of 65,537 calls meets every value of a counter of
sixteen bits, wherever the counter stood before.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.observed import Observed

if TYPE_CHECKING:
    import torch

GOALS = (65_537, 10_001, 1_001)
"""Numbers of calls in all, each one more than a value at which counters usually overflow. The largest that fits into
`MOST_S` is used."""
FIRST_CALLS = 64
"""Number of calls in each of the first releases: few, since the time of a call isn't known yet."""
FIRST_RELEASES = 8
"""Number of first releases. The fastest release so far tells how long a call takes, as the fixed cost of a longer one
counts less. Waiting for a processor doesn't count, so a busy machine allows as many calls."""
MOST_CALLS = 4096
"""Number of calls in a later release, at most. Each release has new contents, so that 65,537 calls have at least 16
of them."""
MOST_S = 4.0
"""Time of all calls together in seconds, at most. Kernels of up to 61 us a call are then asked 65,537 times. Chosen;
a larger value costs as much time in each verification of a slower kernel."""
MOST_BYTES = 2**24
"""Size of all outputs of one release in bytes, at most. It bounds what the arena holds and what the host reads
back."""
ROWS, WIDTHS = 2, (8, 24)
"""Number of rows of the operands, and the range from which their width is drawn."""
THRESHOLD = "1 x the bound, every answer of the row"


def examine(kernel: LoadedKernel) -> Finding:
    """Ask a small question many times, with new contents in each release."""
    if not kernel.runner.makes_many_calls:
        return NotAsked(observed="an interpreter makes the calls", threshold=THRESHOLD)
    if kernel.operation.updates:
        return NotAsked(observed="each call changes what the next one gets", threshold=THRESHOLD)
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    (shape,) = kernel.shapes({**kernel.shape, rows: ROWS, reduced: log_uniform(kernel.rng, *WIDTHS)})
    most_calls = max(2, MOST_BYTES // max(1, _answer_bytes(kernel, shape)))
    made, goal, calls, fastest_s = 0, FIRST_CALLS * FIRST_RELEASES, min(FIRST_CALLS, most_calls), math.inf
    while made < goal:
        observed = kernel.call([kernel.case(shape)], cycles=calls, retain=True)
        if isinstance(observed, Failed):
            return observed
        for answer in _distinct(observed[0]):
            wrong = kernel.judge(answer)[1]
            if wrong is not None:
                return _in_a_series(wrong)
        made += calls
        fastest_s = min(fastest_s, kernel.undelayed_ns / 1e9 / calls)
        if made >= FIRST_CALLS * FIRST_RELEASES:
            goal = next((count for count in GOALS if count * fastest_s <= MOST_S), made)
            calls = max(2, min(MOST_CALLS, most_calls, goal - made))
    left = "" if made >= GOALS[0] else f"; {GOALS[0]} calls not asked: they take too long"
    return Passed(observed=f"{made} calls in a row, every answer right{left}", threshold=THRESHOLD)


def _answer_bytes(kernel: LoadedKernel, shape: Mapping[str, int]) -> int:
    returned = kernel.operation.returned
    return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(kernel.dtype)] for spec in returned)


def _distinct(observed: Observed) -> Iterator[Observed]:
    """Yield each different answer once."""
    import torch

    answers = [_as_words(output) for output in observed.outputs]
    differ = torch.stack([(one != one[0]).any(dim=1) for one in answers]).any(dim=0)
    chosen = {_bytes_at(answers, 0): 0}
    for place in differ.nonzero().flatten().tolist():
        chosen.setdefault(_bytes_at(answers, place), place)
    for place in chosen.values():
        yield dataclasses.replace(observed, outputs=tuple(output[place] for output in observed.outputs))


def _bytes_at(answers: Sequence[torch.Tensor], place: int) -> tuple[bytes, ...]:
    return tuple(one[place].numpy().tobytes() for one in answers)


def _as_words(output: torch.Tensor) -> torch.Tensor:
    """Return each answer's bytes as the widest integers that divide them: eight bytes are compared as fast as one."""
    import torch

    rows = output.contiguous().view(torch.uint8).reshape(len(output), -1)
    widest = next(
        one for one in (torch.int64, torch.int32, torch.int16, torch.uint8) if not rows.shape[1] % one.itemsize
    )
    return rows.view(widest)


def _in_a_series(wrong: Failed) -> Failed:
    message = f"in a long row of calls: {wrong.reason.message}"
    return dataclasses.replace(wrong, reason=wrong.reason.model_copy(update={"message": message}))


ENDURANCE = Gate(name="endurance", examine=examine)
