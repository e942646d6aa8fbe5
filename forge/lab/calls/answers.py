"""Remembers the answers of a candidate, to recognise one that comes again."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from forge.lab.observed import equal_tensors

if TYPE_CHECKING:
    import torch

MOST_ANSWERS, MOST_BYTES = 32, 2**28
"""Number of remembered answers and their bytes, at most; the last few are kept whatever their size."""
FEWEST_ANSWERS = 4
"""Number of last answers that are kept whatever their size. Chosen; four large answers stay in the host's memory."""


class Answered:
    """Last correct answers of one candidate, to recognise one that it gives again."""

    def __init__(self) -> None:
        self._answers: deque[tuple[torch.Tensor, ...]] = deque(maxlen=MOST_ANSWERS)

    def holds(self, outputs: tuple[torch.Tensor, ...]) -> bool:
        """Return whether the outputs, in the order of the operation, equal an earlier answer bit for bit.

        Zeros alone don't count: a kernel that leaves out every element gives them too, and remembers nothing.
        """
        if all(bool((output == 0).all()) for output in outputs):
            return False
        return any(equal_tensors(outputs, earlier) for earlier in self._answers)

    def keep(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Remember the outputs, and forget the oldest answers if all together take more than MOST_BYTES."""
        self._answers.append(outputs)
        kept_bytes = sum(tensor.nbytes for answer in self._answers for tensor in answer)
        while len(self._answers) > FEWEST_ANSWERS and kept_bytes > MOST_BYTES:
            kept_bytes -= sum(tensor.nbytes for tensor in self._answers.popleft())
