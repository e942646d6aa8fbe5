"""Runs beside hostile code. Keeps outputs while calls of other shapes are made, and checks that they don't change.

All outputs of one release share a shape. Memory that is reused only when the shape changes shows later.
"""

import torch

MOST_BYTES = 2**20
"""Size in bytes of all kept outputs, at most. Copies of large outputs would cost as much as calls."""
RELEASES_KEPT = 24
"""Number of following releases during which outputs are kept. Chosen; each of these releases compares the outputs
with their copies."""


class RetainedOutputs:
    """Keeps the outputs of the last release that retained them, and copies of them."""

    def __init__(self) -> None:
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._left = 0

    def keep(self, outputs: list[object]) -> None:
        """Keep these outputs instead of the earlier ones, if they are small."""
        tensors = [one for one in outputs if isinstance(one, torch.Tensor)]
        small = sum(one.nbytes for one in tensors) <= MOST_BYTES
        self._pairs = [(one, one.clone()) for one in tensors] if small else []
        self._left = RELEASES_KEPT

    def is_intact(self) -> bool:
        """Return whether all outputs equal their copies, at the end of one more release."""
        intact = all(torch.equal(_bits(one), _bits(copy)) for one, copy in self._pairs)
        self._left -= 1
        if self._left <= 0:
            self._pairs = []
        return intact


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy's bytes, so that NaN equals itself. A column's elements lie apart; one may have any stride."""
    return tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)
