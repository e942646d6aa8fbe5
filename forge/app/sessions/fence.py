"""Keeps a session for one process. The system releases the lock when the process ends, even by a kill."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.ledger.runs.taken import held


@contextmanager
def fenced(runs_root: Path, session_id: str) -> Iterator[bool]:
    """Yield True if this process has the session until the block ends; False if another process has it."""
    lock = os.open(runs_root / f"session-{session_id}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with held(lock) as is_ours:
        yield is_ours
