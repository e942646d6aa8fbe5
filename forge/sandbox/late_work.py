"""Counts the processor time that a guest takes between its reply and its stop.

Distrusts the guest, which can lengthen its stop: the clock has ended by then, and its work would cost it nothing.
"""

import time
from collections.abc import Iterable, Mapping

from forge.sandbox.cgroups import Group
from forge.sandbox.freeze import FrozenGuest

_SCHEDULED = 2
"""Kind of a process's clock that counts as the scheduler does, in nanoseconds (CPUCLOCK_SCHED)."""


class LateWork:
    """The processor time of one guest since its last reply."""

    def __init__(self, group: Group, frozen: FrozenGuest | None) -> None:
        self._group, self._frozen = group, frozen
        self._clocks: Mapping[int, int] = {}
        self._group_ns: int | None = None

    def begin(self) -> None:
        """Count from now on: the guest has replied."""
        self._clocks, self._group_ns = self._read()

    def taken_ns(self) -> int:
        """Return the processor nanoseconds since `begin`; a process that is new since then counts in full.

        Without a cgroup, processes that ended since then aren't counted.
        """
        clocks, group_ns = self._read()
        if group_ns is not None and self._group_ns is not None:
            return group_ns - self._group_ns
        return grown_ns(self._clocks, clocks)

    def _read(self) -> tuple[Mapping[int, int], int | None]:
        """Read the processes' clocks first: the kernel then counts what runs now, for the group too."""
        clocks = {} if self._frozen is None else clocks_of(self._frozen.held)
        return clocks, self._group.cpu_ns()


def clocks_of(pids: Iterable[int]) -> dict[int, int]:
    """Return the processor nanoseconds of each process that is there, with its threads that have ended.

    The number of a process's clock is that of MAKE_PROCESS_CPUCLOCK in linux/posix-timers_types.h.
    """
    clocks: dict[int, int] = {}
    for pid in pids:
        try:
            clocks[pid] = time.clock_gettime_ns(~pid << 3 | _SCHEDULED)
        except OSError:
            continue
    return clocks


def grown_ns(before: Mapping[int, int], now: Mapping[int, int]) -> int:
    """Return by how much the clocks of the processes that are there now have grown.

    The end of a process takes nothing away, so that it hides no work of others.
    """
    return sum(ns - before.get(pid, 0) for pid, ns in now.items())
