"""Limits how often one caller may ask: a bucket that fills with time and is emptied by requests."""

import time
from dataclasses import dataclass, field

MOST_CALLERS = 4096
"""Number of callers whose buckets are kept; the one that asked least recently goes first."""


@dataclass
class Rate:
    """Up to `burst` requests at once, and `per_second` in the long run."""

    per_second: float
    burst: float
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Caller -> the requests that it has left, and when that was counted."""

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
