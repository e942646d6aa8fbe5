"""Is every answer in a long series of calls correct?

A counter that overflows, or a kernel that errs in every thousandth call, shows nowhere else. The host reads all
answers; those that are equal bit for bit are judged once. A series of 65,537 calls meets every value of a counter of
sixteen bits, wherever the counter stood before.

Contents are new in the first releases. In later ones, chosen at random, contents come again whose right answer is
known. The oracle is then asked only if an answer differs from it. A candidate can't tell beforehand which release
has new contents. All lie at the same addresses, so that an answer kept by address shows.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates.difference import as_words
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.observed import Case, Observed

if TYPE_CHECKING:
    import torch

GOALS = (65_537, 10_001, 4_097, 1_001, 257)
"""Numbers of calls in all, each one more than a value at which counters usually overflow. The largest that fits into
`MOST_S` and `MOST_JUDGING_S` is used. If none fits, the first releases are all: at least 16 calls."""
FIRST_CALLS, FEWEST_CALLS = 64, 2
"""Number of calls in each of the first releases, at most and at least: few, since the time of a call isn't known yet.
The first of them has the fewest."""
FIRST_RELEASES = 8
"""Number of first releases. The release with the least time per call tells how long a call takes: a longer one
spreads its fixed cost over more calls. Waiting for a processor doesn't count, so a busy machine allows as many
calls."""
FIRST_S = 0.5
"""Time of the calls of one first release in seconds, at most, unless it has the fewest calls. All first releases
together then take `MOST_S`."""
MOST_CALLS = 4096
"""Number of calls in a later release, at most. 65,537 calls then have at least 16 of them."""
MOST_S = 4.0
"""Time of all calls together in seconds, at most. Kernels of up to 61 us a call are then asked 65,537 times. Chosen;
a larger value costs as much time in each verification of a slower kernel."""
MOST_JUDGING_S = 2.0
"""Time in seconds that the host's thread and the reference's guests take to draw, read and judge, at most. Chosen;
an operation of the catalogue takes about a tenth of it for 65,537 calls."""
MOST_BYTES = 2**25
"""Size of all outputs of one release in bytes, at most, unless it has the fewest calls. It bounds what the arena
holds and what the host reads back."""
NEW_QUESTIONS = FIRST_RELEASES + 16
"""Number of releases with new contents before others come again: all of a series of 65,537 quick calls."""
NEW_SHARE = 0.25
"""Chance that a release has new contents, after `NEW_QUESTIONS` of them or `MOST_JUDGING_S`. Chosen; a kernel may
keep answers by content, and be wrong for new contents from some call on. It is then found four releases later on
average."""
GROUP_ELEMENTS = 2**14
"""Number of elements that are judged at once, at most, if an answer has fewer: one block of the judge's."""
REPEATABLE = 4
"""Number of last questions that may come again. Chosen; their operands and answers stay in the host's memory."""
ROWS, WIDTHS = 2, (8, 24)
"""Number of rows of the operands, and the range from which their width is drawn."""
THRESHOLD = "1 x the bound, every answer of the row"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask a small question many times, with new contents or known ones in each release."""
    if not kernel.runner.makes_many_calls:
        return NotAsked(observed="an interpreter makes the calls", threshold=THRESHOLD)
    if kernel.operation.updates:
        return NotAsked(observed="each call changes what the next one gets", threshold=THRESHOLD)
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    (shape,) = kernel.shapes({**kernel.shape, rows: ROWS, reduced: log_uniform(kernel.rng, *WIDTHS)})
    series = _Series(kernel, shape)
    for _ in range(FIRST_RELEASES):
        wrong = series.release(series.first_calls)
        if wrong is not None:
            return wrong
    while series.made < (goal := series.goal):
        wrong = series.release(max(FEWEST_CALLS, min(series.most_calls, goal - series.made)))
        if wrong is not None:
            return wrong
    left = "" if series.made >= GOALS[0] else f"; {GOALS[0]} calls not asked: they take too long"
    said = f"{series.made} calls in a row on {series.new} questions, every answer right{left}"
    return Passed(observed=said, threshold=THRESHOLD)


@dataclasses.dataclass(frozen=True)
class _KnownQuestion:
    """A case that was asked, and the first answer to it, which was right."""

    case: Case
    answer: tuple[torch.Tensor, ...]


class _Series:
    """The calls so far, and what they cost."""

    def __init__(self, kernel: LoadedKernel, shape: Mapping[str, int]) -> None:
        self.made, self.new = 0, 0
        self._kernel, self._shape = kernel, shape
        self._questions: deque[_KnownQuestion] = deque(maxlen=REPEATABLE)
        self._call_s = self._reading_s = self._question_s = math.inf
        """Seconds of the candidate and of the host a call, and of the host and the reference's guests a new question.
        Each is that of the quickest release so far."""
        self.most_calls = max(FEWEST_CALLS, min(MOST_CALLS, MOST_BYTES // max(1, _answer_bytes(kernel, shape))))

    @property
    def first_calls(self) -> int:
        """Number of calls of the next of the first releases."""
        affordable = int(FIRST_S / self._call_s)
        return max(FEWEST_CALLS, min(FIRST_CALLS, self.most_calls, affordable))

    @property
    def goal(self) -> int:
        """The largest goal that can be afforded; the number of calls so far if none can.

        It rises when longer releases show what a call costs without the fixed cost of a release.
        """
        return next((count for count in GOALS if self._is_affordable(count)), self.made)

    def _is_affordable(self, count: int) -> bool:
        releases = math.ceil(max(0, count - self.made) / self.most_calls)
        new = min(releases, max(0, NEW_QUESTIONS - self.new))
        new_in_all = self.new + new + NEW_SHARE * (releases - new)
        judging_s = count * self._reading_s + new_in_all * self._question_s
        return count * self._call_s <= MOST_S and judging_s <= MOST_JUDGING_S

    def release(self, calls: int) -> Failed | None:
        """Make calls on new contents or on known ones; return the refusal of a wrong answer."""
        kernel = self._kernel
        known = None if self._asks_anew() else kernel.rng.choice(self._questions)
        started_s = self._working_s()
        case = known.case if known else kernel.case(self._shape)
        drawn_s = self._working_s()
        observed = kernel.call([case], cycles=calls, retain=True)
        if isinstance(observed, Failed):
            return observed
        answers = observed[0]
        places = _distinct(answers.outputs, known.answer if known else None)
        read_s = self._working_s()
        wrong = _first_wrong(kernel, answers, places)
        if wrong is not None:
            return wrong
        ended_s = self._working_s()
        self.made, self.new = self.made + calls, self.new + (known is None)
        self._call_s = min(self._call_s, kernel.undelayed_ns / 1e9 / calls)
        self._reading_s = min(self._reading_s, (read_s - drawn_s) / calls)
        if known is None:
            self._question_s = min(self._question_s, drawn_s - started_s + ended_s - read_s)
            self._questions.append(_KnownQuestion(case, tuple(output[0].clone() for output in answers.outputs)))
            kernel.answered.keep(self._questions[-1].answer)
        return None

    def _asks_anew(self) -> bool:
        """Return whether the next release has new contents."""
        if not self._questions or (self.new < NEW_QUESTIONS and self.new * self._question_s < MOST_JUDGING_S):
            return True
        return self._kernel.rng.random() < NEW_SHARE

    def _working_s(self) -> float:
        """Return for how many seconds this thread and the reference's guests have worked; waits don't count."""
        answering_ns = self._kernel.operation.answering_ns
        return time.thread_time() + (answering_ns() / 1e9 if answering_ns is not None else 0.0)


def _answer_bytes(kernel: LoadedKernel, shape: Mapping[str, int]) -> int:
    returned = kernel.operation.returned
    return sum(math.prod(spec.sizes(shape)) * ITEMSIZE_BYTES[spec.element_type(kernel.dtype)] for spec in returned)


def _distinct(outputs: Sequence[torch.Tensor], known: Sequence[torch.Tensor] | None) -> list[int]:
    """Return a place of each different answer; of none that equals the known one bit for bit."""
    import torch

    answers = [as_words(output) for output in outputs]
    right = [as_words(output[None])[0] for output in known] if known else [one[0] for one in answers]
    differ = torch.stack([(one != its).any(dim=1) for one, its in zip(answers, right, strict=True)]).any(dim=0)
    chosen = {} if known else {_bytes_at(answers, 0): 0}
    for place in differ.nonzero().flatten().tolist():
        chosen.setdefault(_bytes_at(answers, place), place)
    return list(chosen.values())


def _first_wrong(kernel: LoadedKernel, answers: Observed, places: Sequence[int]) -> Failed | None:
    """Judge the answers at these places, small ones in groups; return the refusal of the first wrong one.

    A kernel whose sums have no fixed order gives thousands of right answers to one question.
    """
    elements = max(output[0].numel() for output in answers.outputs)
    at_once = max(1, GROUP_ELEMENTS // max(1, elements))
    for start in range(0, len(places), at_once):
        group = places[start : start + at_once]
        if len(group) > 1 and kernel.plainly_right(_at(answers, group)):
            continue
        for place in group:
            wrong = kernel.wrong(_at(answers, place))
            if wrong is not None:
                return _in_a_series(wrong)
    return None


def _at(answers: Observed, place: int | Sequence[int]) -> Observed:
    return dataclasses.replace(answers, outputs=tuple(output[place] for output in answers.outputs))


def _bytes_at(answers: Sequence[torch.Tensor], place: int) -> tuple[bytes, ...]:
    return tuple(one[place].numpy().tobytes() for one in answers)


def _in_a_series(wrong: Failed) -> Failed:
    message = f"in a long row of calls: {wrong.reason.message}"
    return dataclasses.replace(wrong, reason=wrong.reason.model_copy(update={"message": message}))


ENDURANCE = Gate(name="endurance", examine=examine)
