"""Decides whether a call's operands can be resident in the last-level cache, and how many sets fit at once.

The resident regime is that of a decode step: the operands were written by a kernel just before. Every window still
has fresh inputs, and no set is asked twice in it. So the sets of a window together fit into half of the cache. The
other half is for what writes them, and for a cache that keeps copies in several places.
"""

import os
from dataclasses import dataclass

from forge.platforms.host_facts import CACHES

SHARE = 0.5
"""Share of the last-level cache that the sets of a window may take together. Chosen; the rest is left to outputs and
to a cache that isn't fully associative."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
"""Number of bytes of each unit in which Linux gives a cache's size."""


@dataclass(frozen=True)
class Residence:
    """The size of a call's operands beside that of the cache."""

    cache_bytes: int | None
    """Size of the last-level cache. None: it isn't known."""
    operand_bytes: int
    fewest_sets: int = 1
    """Number of sets that a window needs."""
    excluded: str | None = None
    """Reason why the clock can't measure this regime. None: it can."""

    @property
    def sets(self) -> int:
        """Number of sets that fit into the cache's share together."""
        return int(SHARE * (self.cache_bytes or 0)) // max(1, self.operand_bytes)

    @property
    def why_not(self) -> str | None:
        """Why the regime doesn't apply; None if it does."""
        if self.excluded is not None:
            return self.excluded
        if self.cache_bytes is None:
            return "the size of the last-level cache isn't known"
        if self.sets >= self.fewest_sets:
            return None
        sets = "a call's operands" if self.fewest_sets == 1 else f"the operands of {self.fewest_sets} calls"
        return (
            f"{sets} take {self.fewest_sets * self.operand_bytes} bytes, more than half of the last-level cache of "
            f"{self.cache_bytes}"
        )


def processor_cache_bytes() -> int | None:
    """Return the size of the processor's last-level cache as the system reports it; None if it doesn't."""
    found: dict[int, int] = {}
    for folder in sorted(CACHES.glob("index*")) if os.path.isdir(CACHES) else ():
        try:
            level, text = int((folder / "level").read_text()), (folder / "size").read_text().strip()
            found[level] = int(text[:-1]) * _UNITS[text[-1]]
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return found[max(found)] if found else None
