"""Counts the processes at work in a workspace, and detects that one of them was killed.

Every process that may write holds a shared lock on `<database>.present` while it works. The operating system releases
the lock when the process ends, even by a kill. A process that gets the lock exclusively is alone: all unfinished work
was left by processes that were killed.
The file counts processes: each adds a `+` when it begins and a `-` when it ends in good order. If the counts differ
while no other process is at work, a process was killed.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.ledger.own_file import open_own

BEGAN = b"+"
"""Byte that a process adds when it begins."""
ENDED = b"-"
"""Byte that a process adds when it ends in good order."""
MARKS_LIMIT = 1 << 24
"""Largest number of marks that are counted, one a byte. Chosen: eight million processes that are never alone.
A longer file counts as left by a killed process, which makes it short again."""


class Presence:
    """A process at work in a workspace, from `Presence(...)` to `leave()`."""

    def __init__(self, database: Path) -> None:
        self._descriptor = open_own(presence_path(database), os.O_RDWR | os.O_APPEND)
        self.after_a_crash = False
        """True if this process was alone at its start and an earlier one was killed. `settle` resets it."""
        if self._lock_alone():
            self.after_a_crash = not self._balanced()
            if not self.after_a_crash:
                os.truncate(self._descriptor, 0)
        os.write(self._descriptor, BEGAN)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield True if this is the only process in the workspace, and keep others out until the block ends.

        The shared lock is given up for a moment to ask: ask before any work is begun.
        """
        alone = self._lock_alone()
        try:
            if not alone:
                fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            yield alone
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def settle(self) -> None:
        """Forget the processes that were killed; call it inside `alone`, once their unfinished work is cleaned up."""
        os.truncate(self._descriptor, 0)
        os.write(self._descriptor, BEGAN)
        self.after_a_crash = False

    def leave(self) -> None:
        """Record that this process ended in good order."""
        os.write(self._descriptor, ENDED)
        os.close(self._descriptor)

    def _lock_alone(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _balanced(self) -> bool:
        marks = os.pread(self._descriptor, MARKS_LIMIT + 1, 0)
        return len(marks) <= MARKS_LIMIT and marks.count(BEGAN) == marks.count(ENDED)


def presence_path(database: Path) -> Path:
    """Return the path of the crash marker beside a database: `<database>.present`."""
    return database.with_name(f"{database.name}.present")
