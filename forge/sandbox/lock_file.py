"""Opens the file of a lock (flock) that processes of several users may share."""

import os
from pathlib import Path

from forge.errors import EnvironmentUnfit


def open_lock(lock: Path) -> int:
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
