"""Whose turn it is on a device: measurements one at a time, judging beside judging, on a whole machine.

A lock is a file that is held open (flock): a process that dies gives it up, and its name tells who shares it.
"""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.domain.device import Device
from forge.errors import EnvironmentUnfit


def lock_of(device: Device, folder: Path | None = None) -> Path:
    """The lock of a GPU, the same for every workspace and user of this machine."""
    return (folder or Path(tempfile.gettempdir())) / f"forge-{device.uuid}.lock"


@contextmanager
def turn(lock: Path, *, alone: bool, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock, alone or beside others that don't ask to be alone; say so once while waiting."""
    held = _open(lock)
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    try:
        try:
            fcntl.flock(held, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another {'job' if alone else 'measurement'} to end ({lock.name})")
            fcntl.flock(held, kind)
        yield
    finally:
        os.close(held)


def _open(lock: Path) -> int:
    """Open for reading first: in a shared folder, what another user made can't be opened to be made."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            return os.open(lock, os.O_RDONLY | flags)
        except FileNotFoundError:
            return os.open(lock, os.O_RDONLY | os.O_CREAT | flags, 0o644)
    except OSError as error:
        raise EnvironmentUnfit(
            f"can't open the lock {str(lock)!r} ({error}): expected a file of this or another user's Forge",
            hint=f"look at what is there: ls -l {lock}",
        ) from error
