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
from forge.sandbox.calling_off import wanted
from forge.sandbox.lock_file import open_lock


def lock_of(device: Device, folder: Path | None = None) -> Path:
    """Return the path of a GPU's lock, the same for every workspace and user of this machine."""
    return (folder or Path(tempfile.gettempdir())) / f"forge-{device.uuid}.lock"


@contextmanager
def turn(lock: Path, *, alone: bool, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold a device's lock until the block ends, exclusively if `alone` and shared otherwise; report a wait once.

    Raises CalledOff if the work was called off. Its result must not be recorded then.
    """
    held = open_lock(lock)
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
