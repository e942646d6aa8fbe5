"""What SQLite and the operating system report, said in Forge's errors: the disk, the file, or the rules."""

import sqlite3
from pathlib import Path
from types import TracebackType

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


NOTHING = "nothing was written, the ledger is as it was"
NO_LEDGER = "no ledger was made, though folders for it may be there now"
_UNDECODABLE = "Could not decode to UTF-8"
"""What Python's driver says, without a code, of a text column that holds other bytes."""


def _not_text(path: Path) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"{path}: the database can't be read as a ledger (text that isn't UTF-8): restore it from a backup"
    )


def _as_forge_error(error: sqlite3.Error, path: Path, left: str) -> ForgeError | None:
    """The Forge error for a driver's, or None for a mistake in our own use of the driver."""
    extended = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        return _not_text(path) if str(error).startswith(_UNDECODABLE) else None
    name = getattr(error, "sqlite_errorname", "SQLITE")
    primary = extended & _PRIMARY
    if primary in _STORAGE:
        return StorageFailed(
            f"{path}: the disk or its file system refused ({name}: {error}); {left}: "
            f"free space or restore write access, then {_then(left)}"
        )
    if primary in _FILE:
        return LedgerCorrupt(
            f"{path}: the database can't be read as a ledger ({name}: {error}): restore it from a backup"
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return IntegrityError(f"{path}: the ledger's own rules refused the row ({error}); nothing was written")
    return None


def _then(left: str) -> str:
    """A command that recorded something isn't run a second time unlooked."""
    return "run the command again" if left in (NOTHING, NO_LEDGER) else "go on from there"


class StorageErrors:
    """For a block, turns the driver's and the system's errors about `path` into ours."""

    def __init__(self, path: Path, left: str = NOTHING) -> None:
        self._path = path
        self._left = left
        """What is true of the ledger when the disk refuses inside the block."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, sqlite3.Error):
            translated = _as_forge_error(error, self._path, self._left)
            if translated is not None:
                raise translated from error
        elif isinstance(error, UnicodeDecodeError):  # a name or a message of SQLite's, out of a damaged page
            raise _not_text(self._path) from error
        elif isinstance(error, OSError):
            raise StorageFailed(
                f"{self._path}: the system refused ({error.strerror or error}); {self._left}: "
                f"free space or restore access, then {_then(self._left)}"
            ) from error


def storage_errors(path: Path, *, left: str = NOTHING) -> StorageErrors:
    """Turn the driver's and the system's errors about `path` into ours; `left` says what is true afterwards."""
    return StorageErrors(path, left)
