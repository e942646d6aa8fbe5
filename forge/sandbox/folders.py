"""Makes temporary folders that a process locks; folders of a killed process are removed when the next is made."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

UNHELD_S = 60.0
"""Seconds that may pass between the creation of a folder and its lock. Chosen; it takes microseconds, so this is a
large margin."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HeldFolder:
    """A new temporary folder, locked until it is removed or this process ends."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._descriptor = os.open(self.path, _DIRECTORY)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        _sweep(prefix, now_s=os.fstat(self._descriptor).st_ctime)

    def remove(self) -> None:
        """Remove the folder with its content; a second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _sweep(prefix: str, *, now_s: float) -> None:
    """Remove this user's folders with the prefix that no process locks any more."""
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
