"""Temporary folders that a process holds by a lock: those of a killed one are removed by the next that makes any."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

UNHELD_S = 60.0
"""Seconds between a folder's making and its lock, at the very most."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HeldFolder:
    """A new temporary folder, ours until it is removed or this process ends."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._descriptor = os.open(self.path, _DIRECTORY)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        _sweep(prefix, now_s=os.fstat(self._descriptor).st_ctime)

    def remove(self) -> None:
        """Remove it with all that is in it; a second time does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _sweep(prefix: str, *, now_s: float) -> None:
    """Remove this user's folders under the prefix that no process holds any more."""
    for entry in os.scandir(tempfile.gettempdir()):
        if entry.name.startswith(prefix):
            try:
                _remove_if_left(entry.path, now_s)
            except OSError:
                continue  # held, another user's, or removed meanwhile


def _remove_if_left(path: str, now_s: float) -> None:
    descriptor = os.open(path, _DIRECTORY)
    try:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or now_s - about.st_ctime < UNHELD_S:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
