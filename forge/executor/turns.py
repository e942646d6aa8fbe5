"""Takes turns on a device, for all processes of a machine: measurements run alone, judging runs beside judging.

A lock is an open file (flock). A process that dies releases it. Processes that use the same file name share the lock.
"""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.domain.device import Device
from forge.errors import EnvironmentUnfit
from forge.sandbox.calling_off import wanted


def lock_of(device: Device, folder: Path | None = None) -> Path:
    """Return the path of a GPU's lock, the same for every workspace and user of this machine."""
    return (folder or Path(tempfile.gettempdir())) / f"forge-{device.uuid}.lock"


@contextmanager
def turn(lock: Path, *, alone: bool, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold a device's lock until the block ends, exclusively if `alone` and shared otherwise; report a wait once.

    Raises CalledOff if the work was called off. Its result must not be recorded then.
    """
    held = _open(lock)
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    try:
        try:
            fcntl.flock(held, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another {'job' if alone else 'measurement'} to end ({lock.name})")
            fcntl.flock(held, kind)
        with wanted():
            yield
    finally:
        os.close(held)


def _open(lock: Path) -> int:
    """Open the lock's file, and make it if there is none; raise EnvironmentUnfit if neither can be done.

    It is first opened without O_CREAT, since in a shared folder O_CREAT fails on a file that another user made.
    """
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
            hint=f"look at the file: ls -l {lock}",
        ) from error
