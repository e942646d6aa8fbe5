"""Runs beside hostile code. Outputs that a caller still has, while calls of other shapes are made.

Those of one release share a shape; memory that is handed out anew when the shape changes shows only afterwards.
"""

import torch

MOST_BYTES = 2**20
"""Of all that is kept: copies of large outputs would cost what calls cost."""
RELEASES = 24
"""That follow, for as long as outputs are kept."""


class Kept:
    """The outputs of the last release that retained them, and copies."""

    def __init__(self) -> None:
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._left = 0

    def keep(self, outputs: list[object]) -> None:
        """Keep these from now on, in place of others, as far as they are small."""
        tensors = [one for one in outputs if isinstance(one, torch.Tensor)]
        small = sum(one.nbytes for one in tensors) <= MOST_BYTES
        self._pairs = [(one, one.clone()) for one in tensors] if small else []
        self._left = RELEASES

    def is_intact(self) -> bool:
        """Whether all are what they were, at the end of one more release."""
        intact = all(torch.equal(_bits(one), _bits(copy)) for one, copy in self._pairs)
        self._left -= 1
        if self._left <= 0:
            self._pairs = []
        return intact


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """NaN is itself."""
    return tensor.reshape(-1).view(torch.uint8)
