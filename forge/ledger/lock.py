"""The writer's place in the queue: a file lock beside the database.

SQLite's own waiting sleeps in growing steps and can starve one of many writers for seconds; a queue in the
kernel doesn't. Correctness never rests on this lock: `BEGIN IMMEDIATE` stands behind it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WriterLock:
    """`flock` on `<database>.lock`, held for one transaction at a time."""

    def __init__(self, database: Path) -> None:
        flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(lock_path(database), flags, 0o644)

    def take(self) -> None:
        """Wait for the lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let the next one have it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock, hold it for the block."""
        self.take()
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        """Give up the file; the lock file itself stays, for others may wait on it."""
        os.close(self._descriptor)


def lock_path(database: Path) -> Path:
    """`<database>.lock`."""
    return database.with_name(f"{database.name}.lock")
