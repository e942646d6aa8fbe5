"""Follows and reads paths that a caller names, whatever is there.

A pipe, a device or an endless file can't block the reader. A link to itself is the caller's mistake.
"""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.errors import UsageError
from forge.ledger.durable import PART_PREFIX, PUBLIC, fsync_folder, write_durably
from forge.ledger.failures import storage_errors

_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""Errors of the system where a folder takes a name that isn't free: two for a filled folder, the third for a file."""


def resolved(path: Path) -> Path:
    """Return the path without links, also of what isn't there; raise UsageError if these lead in a circle."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        # a circle is a RuntimeError up to Python 3.12, and with `strict` alone an error at all in newer ones
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            return path.resolve()
        raise UsageError(f"{str(path)!r} is a link that leads to itself: expected a folder or a file") from error


def read_regular(path: Path, *, limit_bytes: int) -> bytes:
    """Return a regular file's bytes; raise ValueError for another kind or a larger file, or the system's error."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("it is not a regular file")
    with open(descriptor, "rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ValueError(f"it has more than {limit_bytes} bytes")
    return content


def read_named(path: Path, *, what: str, expected: str, limit_bytes: int) -> bytes:
    """Return the bytes of a file that the caller names; raise UsageError, which says `what` it is and is expected."""
    try:
        return read_regular(path, limit_bytes=limit_bytes)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{what} can't be read ({why}): expected {expected}") from error


def make_parent(target: Path) -> None:
    """Make the folder that a new file or folder is put into; raise UsageError if it can't be made."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't make the folder {str(target.parent)!r} ({error.strerror}): name another") from error


@contextmanager
def folder_aside(target: Path) -> Iterator[Path]:
    """Yield a folder beside `target` that takes its name if the block ends without an error; else remove it.

    Raises UsageError if another process took the name meanwhile, StorageFailed if the disk refuses.
    """
    make_parent(target)
    with storage_errors(target):
        aside = Path(tempfile.mkdtemp(prefix=PART_PREFIX, dir=target.parent))
        try:
            yield aside
            _take_name(aside, target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _take_name(aside: Path, target: Path) -> None:
    try:
        os.rename(aside, target)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        raise UsageError(f"another process made {str(target)!r} meanwhile: give a name that is free") from error
    fsync_folder(target.parent)


def writable(target: Path) -> Path:
    """Return the path, without links, of a file to write; raise UsageError if a folder, pipe or device is there."""
    path = resolved(target)
    if path.is_dir():
        raise UsageError(f"can't write {str(target)!r}: it is a folder, expected a file's name")
    if path.exists() and not path.is_file():
        raise UsageError(
            f"can't write {str(target)!r}: it isn't a plain file, expected a new name or a file to replace"
        )
    return path


def write_public(target: Path, text: str) -> None:
    """Write a file that every user may read, with its folder; raise UsageError if it can't be a file."""
    path = writable(target)
    make_parent(path)
    write_durably(path, text.encode(), mode=PUBLIC)
