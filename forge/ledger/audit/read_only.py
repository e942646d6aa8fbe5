"""Opens a ledger for reading only, also where no file can be written beside it.

SQLite reads a file in write-ahead mode through an index that it creates beside it. On a read-only disk it can't
create one. Without a log none is needed: the file then holds everything (sqlite.org/wal.html, "Read-Only Databases").
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from forge.errors import EnvironmentUnfit, LedgerCorrupt

_INDEX_ERRORS = (sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP)
"""Error codes of SQLite if it can't create the index."""
_PRIMARY_CODE_MASK = 0xFF
"""Bit mask that gives the primary code of an extended result code: its low byte (sqlite.org/rescode.html)."""


def connect_to_read(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    """Open a database read-only; raise EnvironmentUnfit for a log that can't be read here, or SQLite's own error.

    Raises LedgerCorrupt for a journal that is no regular file.
    """
    require_regular_journal(path)
    uri = f"{path.resolve().as_uri()}?mode=ro"
    if _needs_an_index_that_cannot_be_made(uri, timeout_s):
        log = path.resolve().with_name(f"{path.resolve().name}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise EnvironmentUnfit(
                f"{str(path)!r}: {log.name} beside it holds events that can't be read where nothing can be written: "
                "expected a ledger at rest, or a folder with room that you may write to. Make room, copy both files "
                "to such a folder, or make a backup where the ledger is written",
                hint="forge ledger backup --help",
            )
        uri += "&immutable=1"
    return _opened(uri, timeout_s)


def require_regular_journal(path: Path) -> None:
    """Raise LedgerCorrupt for a pipe or another special file in the place of a journal: SQLite would wait for it."""
    journal = path.resolve().with_name(f"{path.resolve().name}-journal")
    if journal.exists() and not journal.is_file():
        raise LedgerCorrupt(f"{str(journal)!r} isn't a regular file: SQLite makes no other journal; move it away")


def _needs_an_index_that_cannot_be_made(uri: str, timeout_s: float) -> bool:
    with closing(_opened(uri, timeout_s)) as tried:
        try:
            tried.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            refused = code & _PRIMARY_CODE_MASK in (
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_READONLY,
                sqlite3.SQLITE_FULL,
            )
            return (
                refused or code in _INDEX_ERRORS
            ) and code != sqlite3.SQLITE_READONLY_ROLLBACK  # a crash left a journal, not a log
    return False


def _opened(uri: str, timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout_s, cached_statements=256)
