"""Takes a run for one process, so that no other process works on it at the same time.

The lock is on the run's folder itself (flock). The system releases it when the process ends, even by a kill.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from forge.ledger.runs.directory import RunDirectory

FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def taken(run: RunDirectory) -> Iterator[bool]:
    """Yield True if this process has the run until the block ends; False if another process has it.

    A seal renames the folder, and the lock goes with it.
    """
    with held(_opened(run)) as is_ours:
        yield is_ours


@contextmanager
def held(descriptor: int) -> Iterator[bool]:
    """Yield whether this process has the lock on an open file until the block ends; then close the file."""
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def is_taken(run: RunDirectory) -> bool:
    """Return whether another process has the run now. The look itself takes the run for some microseconds."""
    with taken(run) as is_ours:
        return not is_ours


def _opened(run: RunDirectory) -> int:
    try:
        return os.open(run.path, FLAGS)
    except FileNotFoundError:  # a seal has renamed it in between, to where its path now leads
        return os.open(run.path, FLAGS)
