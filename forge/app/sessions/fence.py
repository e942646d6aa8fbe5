"""Keeps a session for one process. The system releases the lock when the process ends, even by a kill."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def fenced(runs_root: Path, session_id: str) -> Iterator[bool]:
    """Yield True if this process has the session until the block ends; False if another process has it."""
    lock = os.open(runs_root / f"session-{session_id}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
