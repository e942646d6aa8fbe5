"""Paths that a caller names: followed and read, whatever lies there.

A pipe, a device or a file without end can't hold a reader up, and a link to itself is the caller's mistake.
"""

import os
import stat
from pathlib import Path

from forge.errors import UsageError


def resolved(path: Path) -> Path:
    """The path without links; raise UsageError where these lead round in a circle."""
    try:
        return path.resolve()
    except RuntimeError as error:  # Python 3.13 gives such a path back as it is
        raise UsageError(f"{str(path)!r} is a link that leads to itself: expected a folder or a file") from error


def read_regular(path: Path, *, limit_bytes: int) -> bytes:
    """A regular file's bytes; raise ValueError if it is another kind or larger, and what the system raises."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("it is not a regular file")
    with open(descriptor, "rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ValueError(f"it has more than {limit_bytes} bytes")
    return content
