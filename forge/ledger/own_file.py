"""Opens the small files beside a ledger that Forge makes itself, such as the one that writers lock."""

import os
import stat
from pathlib import Path

from forge.errors import StorageFailed


def open_own(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file, which is made if it is absent; raise StorageFailed for anything else.

    A pipe would be waited for without end, and a symbolic link leads to a file that isn't ours.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise _not_regular(path, os.lstat(path).st_mode) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _not_regular(path, mode)
    return descriptor


def _not_regular(path: Path, mode: int) -> StorageFailed:
    return StorageFailed(
        f"{str(path)!r} is {stat.filemode(mode)!r}, expected a regular file; nothing was written: move it away, then "
        "run the command again, which makes the file"
    )
