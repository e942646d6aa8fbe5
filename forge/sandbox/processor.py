"""Counts the processor seconds of a guest's whole tree, if they are limited; RLIMIT_CPU limits only one process.

The kernel gives the numbers. A process that ignores the end of its children hides theirs; the wall time limits those.
"""

import contextlib
import os
import time
from pathlib import Path

from forge.sandbox.freeze import children

_LOOK_S = 0.25
"""Seconds between two looks, since each reads a file of every process."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Budget:
    """The processor seconds that one tree may still use; `root` is its PID 1."""

    def __init__(self, root: int, limit_s: float | None) -> None:
        self._root, self._limit_s = root, limit_s
        self._next_look_s = 0.0

    def spent(self) -> bool:
        """Return whether the tree has used up its processor seconds; this is cheap, and may be called at any rate."""
        now_s = time.monotonic()
        if self._limit_s is None or now_s < self._next_look_s:
            return False
        self._next_look_s = now_s + _LOOK_S
        return tree_cpu_s(self._root) > self._limit_s


def tree_cpu_s(root: int) -> float:
    """Return the processor seconds of a process, its descendants, and all that they waited for.

    The result never exceeds what was used. Each process is read before its children. A child that ends in between is
    missed once, and never counted twice.
    """
    total_s, seen, waiting = 0.0, {root}, [root]
    while waiting:
        pid = waiting.pop()
        total_s += _own_s(pid)
        for started in children(pid):
            waiting += started - seen
            seen |= started
    return total_s


def _own_s(pid: int) -> float:
    """Return the processor seconds of one process and the children it waited for (proc(5): fields 14 to 17).

    A process that is gone has 0.
    """
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0
