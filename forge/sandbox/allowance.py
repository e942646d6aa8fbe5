"""Counts what all guests of one candidate consume together, and for how long the host waited for them."""

import threading
from typing import Literal

AllowanceExcess = Literal["together", "waited"]
"""End of a candidate. `together`: its guests used up their processor seconds. `waited`: the host waited too long for
them, which a busy machine may also cause."""


class Allowance:
    """What the guests of one candidate may take, one after the other or side by side; each of them counts here."""

    def __init__(self, cpu_s: float, *, wall_s: float) -> None:
        self.cpu_s, self.wall_s = cpu_s, wall_s
        self._consumed_s = self._waited_s = 0.0
        self._counting = threading.Lock()

    def count(self, consumed_s: float, waited_s: float) -> None:
        """Count processor seconds of a guest, and seconds for which the host waited for its answer."""
        with self._counting:
            self._consumed_s += max(0.0, consumed_s)
            self._waited_s += max(0.0, waited_s)

    @property
    def excess(self) -> AllowanceExcess | None:
        """Return what is used up; None while something of both is left."""
        if self._consumed_s > self.cpu_s:
            return "together"
        return "waited" if self._waited_s > self.wall_s else None
