"""The answers a candidate gave, so that one it gives again is known."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from forge.lab.observed import equal_tensors

if TYPE_CHECKING:
    import torch

MOST, MOST_BYTES = 32, 2**28
"""Answers that are kept, and what they may take; the last few whatever they take."""
FEWEST = 4


class Answered:
    """The last answers that were right."""

    def __init__(self) -> None:
        self._answers: deque[tuple[torch.Tensor, ...]] = deque(maxlen=MOST)

    def holds(self, outputs: tuple[torch.Tensor, ...]) -> bool:
        """Whether it was given before, bit for bit."""
        return any(equal_tensors(outputs, earlier) for earlier in self._answers)

    def keep(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Remember it, and forget the oldest where they take too much together."""
        self._answers.append(outputs)
        kept_bytes = sum(tensor.nbytes for answer in self._answers for tensor in answer)
        while len(self._answers) > FEWEST and kept_bytes > MOST_BYTES:
            kept_bytes -= sum(tensor.nbytes for tensor in self._answers.popleft())
