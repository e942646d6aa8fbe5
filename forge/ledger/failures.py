"""Translates errors of SQLite and the operating system into Forge's: of the disk, the file, or the rules."""

import sqlite3
from pathlib import Path
from types import TracebackType

from forge.errors import ForgeError, IntegrityError, LedgerCorrupt, StorageFailed

_STORAGE_CODES = frozenset(
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
"""SQLite's codes for a disk or file system that refuses."""
_FILE_CODES = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_MISMATCH,
    }
)
"""SQLite's codes for a damaged file, or one that is no ledger."""
PRIMARY_CODE_MASK = 0xFF
"""Bit mask that gives the primary code of an extended result code: its low byte (sqlite.org/rescode.html)."""


NOTHING_WRITTEN = "nothing was written, the ledger is as it was"
"""Consequence named in an error if no event was appended."""
NO_LEDGER_MADE = "no ledger was made, though folders for it may be there now"
"""Consequence named in an error if a new ledger couldn't be made."""
_UNDECODABLE = "Could not decode to UTF-8"
"""Beginning of the message, without a code, of Python's driver for a text column that holds other bytes."""


def _not_text(path: Path) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"{path}: the database can't be read as a ledger (text that isn't UTF-8): restore it from a backup"
    )


def _as_forge_error(error: sqlite3.Error, path: Path, left: str) -> ForgeError | None:
    """Return the Forge error for a driver's error; None for a mistake in our own use of the driver."""
    extended = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        return _not_text(path) if str(error).startswith(_UNDECODABLE) else None
    name = getattr(error, "sqlite_errorname", "SQLITE")
    primary = extended & PRIMARY_CODE_MASK
    if primary in _STORAGE_CODES:
        return StorageFailed(
            f"{path}: the disk or its file system refused ({name}: {error}); {left}: "
            f"free space or restore write access, then {_next_step(left)}"
        )
    if primary in _FILE_CODES:
        return LedgerCorrupt(
            f"{path}: the database can't be read as a ledger ({name}: {error}): restore it from a backup"
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return IntegrityError(f"{path}: the ledger's own rules refused the row ({error}); nothing was written")
    return None


def _next_step(left: str) -> str:
    """Return the next step: a command that recorded events isn't simply run a second time."""
    return "run the command again" if left in (NOTHING_WRITTEN, NO_LEDGER_MADE) else "go on from there"


class StorageErrors:
    """Context manager that translates the driver's and the system's errors about `path` into Forge's."""

    def __init__(self, path: Path, left: str = NOTHING_WRITTEN) -> None:
        self._path = path
        self._left = left
        """Consequence named in the error: the state of the ledger if the disk refuses inside the block."""

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
        elif isinstance(error, UnicodeDecodeError):  # a damaged page gave SQLite a name or a message in other bytes
            raise _not_text(self._path) from error
        elif isinstance(error, OSError):
            raise StorageFailed(
                f"{self._path}: the system refused ({error.strerror or error}); {self._left}: "
                f"free space or restore access, then {_next_step(self._left)}"
            ) from error


def storage_errors(path: Path, *, left: str = NOTHING_WRITTEN) -> StorageErrors:
    """Translate the driver's and the system's errors about `path`; `left` is the ledger's state afterwards."""
    return StorageErrors(path, left)
