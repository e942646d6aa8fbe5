"""Limits how often one caller may ask, and how many long answers it may have at once."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from forge.app.access.tokens import Caller
from forge.errors import RequestRefused

MOST_CALLERS = 4096
"""Number of callers whose remaining requests are kept; the one that asked least recently goes first. Chosen: it
bounds memory. A forgotten caller begins anew, so fewer would let callers ask more."""

MOST_PLACES = 256
"""Largest number of long answers at once. Chosen; each holds one connection and its descriptor."""
MOST_OF_READERS = 224
"""Largest number of long answers to callers without a token. The places left are for the holders of tokens."""
MOST_OF_ONE = 32
"""Largest number of long answers to one token. Chosen; a person with a page open in each of several tabs needs
ten."""


@dataclass
class LongAnswers:
    """Long answers that are open: of callers without a token together, and of each token."""

    _taken: Counter[str] = field(default_factory=Counter)

    def require(self, caller: Caller) -> None:
        """Raise RequestRefused if there is no place for another long answer to this caller."""
        name = _name(caller)
        most = MOST_OF_ONE if name else MOST_OF_READERS
        if self._taken[name] >= most or self._taken.total() >= MOST_PLACES:
            found = f"{self._taken[name]} answers of yours and {self._taken.total()} of all are open"
            raise RequestRefused(f"{found}: expected at most {most} and {MOST_PLACES}", status=503)

    @contextmanager
    def taken(self, caller: Caller) -> Iterator[None]:
        """Hold a place until the block ends."""
        self._taken[_name(caller)] += 1
        try:
            yield
        finally:
            self._taken[_name(caller)] -= 1

    def __len__(self) -> int:
        """Return the number of places that are taken."""
        return self._taken.total()


def _name(caller: Caller) -> str:
    return "" if caller.scope == "reader" else caller.actor


@dataclass
class Rate:
    """Up to `burst` requests at once, and `per_second` in the long run."""

    per_second: float
    burst: float
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Caller -> its remaining requests, and when they were counted."""

    def take(self, caller: str) -> bool:
        """Count one request of a caller; return False if it has none left."""
        at = time.monotonic()
        left, counted = self._left.pop(caller, (self.burst, at))
        left = min(self.burst, left + (at - counted) * self.per_second)
        is_allowed = left >= 1
        self._left[caller] = (left - 1 if is_allowed else left, at)
        if len(self._left) > MOST_CALLERS:
            del self._left[next(iter(self._left))]
        return is_allowed
