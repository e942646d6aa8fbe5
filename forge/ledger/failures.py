"""What SQLite and the operating system report, said in Forge's errors: the disk, the file, or the rules."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.errors import ForgeError, IntegrityError, LedgerCorrupt, StorageFailed

_STORAGE = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
    }
)
_FILE = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_MISMATCH,
    }
)
_PRIMARY = 0xFF
"""An extended result code's low byte is its primary code (sqlite.org/rescode.html)."""


def _as_forge_error(error: sqlite3.Error, path: Path) -> ForgeError | None:
    """The Forge error for a driver's, or None for a mistake in our own use of the driver."""
    extended = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        return None
    name = getattr(error, "sqlite_errorname", "SQLITE")
    primary = extended & _PRIMARY
    if primary in _STORAGE:
        return StorageFailed(
            f"{path}: the disk or its file system refused ({name}: {error}); nothing was written, "
            "the ledger is as it was: free space or restore write access, then run the command again"
        )
    if primary in _FILE:
        return LedgerCorrupt(
            f"{path}: the database can't be read as a ledger ({name}: {error}): restore it from a backup"
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return IntegrityError(f"{path}: the ledger's own rules refused the row ({error}); nothing was written")
    return None


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the driver's and the system's errors about `path` into ours."""
    try:
        yield
    except sqlite3.Error as error:
        translated = _as_forge_error(error, path)
        if translated is None:
            raise
        raise translated from error
    except UnicodeDecodeError as error:  # a name or a message of SQLite's, out of a damaged page
        raise LedgerCorrupt(
            f"{path}: the database can't be read as a ledger (text that isn't UTF-8): restore it from a backup"
        ) from error
    except OSError as error:
        raise StorageFailed(
            f"{path}: the system refused ({error.strerror or error}); nothing was written: "
            "free space or restore access, then run the command again"
        ) from error
