"""Who works in a workspace now, and whether someone was killed in it.

Every process that may write holds a shared lock on `<database>.present` for as long as it works; the kernel takes
it back when the process ends, however it ends. So whoever gets the lock alone knows that nobody is at work, and
that whatever is half done was left by the dead. The file itself counts: a `+` for each one who came, a `-` for
each one who left in good order. If the two don't balance while nobody is there, somebody was killed.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CAME = b"+"
LEFT = b"-"
_READ_BYTES = 1 << 16


class Presence:
    """One process at work in a workspace, from `Presence(...)` to `leave()`."""

    def __init__(self, database: Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(presence_path(database), flags, 0o644)
        self.after_a_crash = False
        """Nobody else was here, and somebody hadn't left in good order. Stands until `settle`."""
        if self._lock_alone():
            self.after_a_crash = not self._balanced()
            if not self.after_a_crash:
                os.truncate(self._descriptor, 0)
        os.write(self._descriptor, CAME)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else is here; if so, nobody comes in before the block's end.

        For the moment of asking this process isn't seen here: ask before anything is begun.
        """
        alone = self._lock_alone()
        try:
            if not alone:
                fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            yield alone
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def settle(self) -> None:
        """Forget who was killed; asked for inside `alone`, when all they left is put right."""
        os.truncate(self._descriptor, 0)
        os.write(self._descriptor, CAME)
        self.after_a_crash = False

    def leave(self) -> None:
        """Leave in good order."""
        os.write(self._descriptor, LEFT)
        os.close(self._descriptor)

    def _lock_alone(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _balanced(self) -> bool:
        came = left = place = 0
        while chunk := os.pread(self._descriptor, _READ_BYTES, place):
            came, left, place = came + chunk.count(CAME), left + chunk.count(LEFT), place + len(chunk)
        return came == left


def presence_path(database: Path) -> Path:
    """`<database>.present`."""
    return database.with_name(f"{database.name}.present")
