"""Queues writers on a file lock beside the database.

SQLite's own waiting sleeps in growing steps, and one of many writers can wait for seconds. A queue in the operating
system doesn't have this problem. Correctness never depends on this lock: `BEGIN IMMEDIATE` protects the file.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.ledger.own_file import open_own


class WriterLock:
    """`flock` on `<database>.lock`, held for one transaction at a time."""

    def __init__(self, database: Path) -> None:
        self._descriptor = open_own(lock_path(database), os.O_RDONLY)

    def take(self) -> None:
        """Wait for the lock until no other process holds it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Release the lock to the next writer."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock and hold it for the block."""
        self.take()
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        """Close the lock's file; the file itself stays, because other writers may wait on it."""
        os.close(self._descriptor)


def lock_path(database: Path) -> Path:
    """Return the path of the writers' lock beside a database: `<database>.lock`."""
    return database.with_name(f"{database.name}.lock")
