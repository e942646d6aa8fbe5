"""Writes a file that the user named, whole or not at all, and never through a link."""

import contextlib
import os
import tempfile
from pathlib import Path

from forge.errors import UsageError

MODE = 0o644
"""Permissions of a written file: everyone may read it, its owner may write."""


def replace_file(path: Path, content: bytes, *, suffixes: tuple[str, ...]) -> None:
    """Write `content` to `path`. An existing file is replaced in one step and stays whole until then.

    The name must end in one of `suffixes`, so that a typing error can't replace a ledger. Raises UsageError for
    another ending, for anything but a plain file, and if the disk refuses.
    """
    require_suffix(path, suffixes)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(
            f"can't write {str(path)!r}: it isn't a plain file; expected a new name, or a file to replace"
        )
    try:
        descriptor, aside = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), MODE)
            os.replace(aside, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside)
    except OSError as error:
        raise UsageError(
            f"can't write {str(path)!r} ({error.strerror}): expected a file in a folder that exists"
        ) from error


def require_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise UsageError unless the name ends in one of `suffixes`."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"can't write {str(path)!r}: expected a name that ends in {' or '.join(suffixes)}")
