"""Judges the answers of timed windows after the windows, several at a time: judging one takes longer than a window.

The host chooses before each window whether it is judged, and copies its answers out of the guest at once. So nothing
that is done later can change an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.lab.calls.judged_outputs import Verdict
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.observed import Observed
from forge.lab.parallel import parallel_map

MOST_WAITING_BYTES = 2**28
"""Bytes of operands that wait to be judged, at most. The oracle takes about forty times as much on the device, for
all of them together."""


@dataclass(frozen=True)
class _Waiting:
    side: str
    kernel: LoadedKernel
    observed: Observed


class JudgedLater:
    """Answers that wait to be judged."""

    def __init__(self, *, side_by_side: bool) -> None:
        """Make an empty queue; an oracle that is a guest is asked one question after the other."""
        self._side_by_side = side_by_side
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0

    def add(self, side: str, kernel: LoadedKernel, observed: Sequence[Observed]) -> tuple[str, Failed] | None:
        """Queue answers to be judged later; judge all of the queue if it takes too much memory."""
        for one in observed:
            self._waiting.append(_Waiting(side, kernel, one))
            self._waiting_bytes += sum(tensor.nbytes for tensor in (*one.case.inputs, *one.outputs))
        return self.judge() if self._waiting_bytes > MOST_WAITING_BYTES else None

    def judge(self) -> tuple[str, Failed] | None:
        """Judge all answers that wait; return the side and the refusal of the first wrong one."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        serial_up_to = 1 if self._side_by_side else len(waiting)
        for one, alone in zip(waiting, parallel_map(_judged, waiting, serial_up_to=serial_up_to), strict=True):
            failed = None if alone is None else one.kernel.settle(one.observed, alone)
            if failed is not None:
                return one.side, failed
        return None


def _judged(one: _Waiting) -> Verdict | None:
    return one.kernel.judge_if_needed(one.observed)
