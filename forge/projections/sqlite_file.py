"""Makes, opens, compares and replaces the file `history.db`.

Readers open it at any time. So it is changed by SQLite's own transactions: with a write-ahead log, readers never wait
and never see half of a change. A rebuilt file is copied over it in one transaction. A rename under an open reader
would leave that reader's log beside another file (https://www.sqlite.org/howtocorrupt.html, 2.4).
"""

import contextlib
import errno
import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path

import orjson

from forge.ledger.failures import PRIMARY_CODE_MASK
from forge.projections.history_version import SCHEMA_VERSION
from forge.projections.schema import Table, creations, tables

PAGE_BYTES = 4096
"""Size of a page of the file in bytes. It is SQLite's default."""
CACHE_KIB = 2048
"""Cache in KiB of an open file. It is SQLite's default, 2000 KiB, as a power of two."""
BUILD_CACHE_KIB = 8192
"""Cache in KiB while a file is built; with less, pages with rows of many runs are written and read repeatedly."""
MAPPED_BYTES = 2**30
"""Bytes of the file that a reader maps into memory, so that many small reads of a large history need no copies."""
APPLICATION_ID = 0x46524748
"""Id in the file's header: `FRGH`, a Forge history, as `file` and `PRAGMA application_id` show it."""
BUSY_TIMEOUT_S = 30.0
"""Seconds that SQLite waits for a lock. Chosen: as long as for the ledger; a rebuild of a large history holds it for
seconds."""
ASIDE = ".publishing-"
"""Prefix of unfinished files beside the published ones."""
SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""
DAMAGE_CODES = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
    }
)
"""SQLite's codes for a damaged file, or one that is no history."""


# The statements below are made of the names of our own tables only.


@cache
def upsert(table: Table) -> str:
    """Return the statement that writes a whole row, new or not; it takes the columns in order."""
    places = ", ".join("?" * len(table.columns))
    return f"INSERT OR REPLACE INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})"  # noqa: S608


def insertion(table: Table, query: str) -> str:
    """Return the statement that adds the rows of a query, which has the table's columns in order."""
    return f"INSERT INTO {table.name} {query}"


def removal(table: Table, column: str | None = None) -> str:
    """Return the statement that removes all rows of a table, or those with one value in `column`."""
    return f"DELETE FROM {table.name}" + (f" WHERE {column} = ?" if column else "")  # noqa: S608


INVALIDATION = "UPDATE benchmarks SET invalidated_seq = ? WHERE seq = ?"
"""Statement that marks the rows of a benchmark with the event that withdrew it."""


@cache
def by_key(table: Table) -> str:
    """Return the query for one whole row; it takes the primary key's values in order."""
    wanted = " AND ".join(f"{column} = ?" for column in table.key)
    return f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {wanted}"  # noqa: S608


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a file that exists; raise sqlite3.DatabaseError if something else has its name."""
    require_own(path)
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    settings = (
        (f"mmap_size = {MAPPED_BYTES}",) if read_only else (f"cache_size = -{CACHE_KIB}", "synchronous = NORMAL")
    )
    try:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
        (found,) = connection.execute("PRAGMA application_id").fetchone()
        if found != APPLICATION_ID:
            raise _no_history(path, f"a database with the id {found}")
    except BaseException:  # a damaged file, which is built anew
        connection.close()
        raise
    return connection


def require_own(path: Path) -> None:
    """Raise sqlite3.DatabaseError unless the database and what SQLite keeps beside it are files with one name each.

    SQLite would write over the file that a link leads to, such as the ledger. It would wait for a pipe without end.
    A file without a name is one that another process removes at this moment, as the last reader does.
    """
    for beside in ("", *SQLITE_SUFFIXES):
        name = path.with_name(path.name + beside)
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(name)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise _no_history(name, f"{stat.filemode(found.st_mode)} with {found.st_nlink} names")


def _no_history(path: Path, found: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(f"{str(path)!r} is {found}: expected a history in a file of its own")
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


def create(path: Path) -> sqlite3.Connection:
    """Begin a new file that no other process knows; its content isn't safe before `finish`."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in (
        f"page_size = {PAGE_BYTES}",
        "journal_mode = OFF",
        "synchronous = OFF",
        f"cache_size = -{BUILD_CACHE_KIB}",
        "locking_mode = EXCLUSIVE",
        f"application_id = {APPLICATION_ID}",
        f"user_version = {SCHEMA_VERSION}",
    ):
        connection.execute(f"PRAGMA {setting}")
    for statement in creations("TABLE"):
        connection.execute(statement)
    return connection


def add_indexes(connection: sqlite3.Connection) -> None:
    """Make the indexes; this is faster after the rows are written."""
    for statement in creations("INDEX"):
        connection.execute(statement)


def add_views(connection: sqlite3.Connection, views: Mapping[str, str]) -> None:
    """Make the views, each from its name and its query."""
    for name, query in views.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")


def finish(connection: sqlite3.Connection, views: Mapping[str, str]) -> None:
    """Add the views, and close the file."""
    add_views(connection, views)
    connection.close()


def overwrite(path: Path, aside: Path) -> None:
    """Replace the content of `path` by that of `aside`, in one transaction that readers don't notice.

    A file that is no database any more has no readers, so it is replaced by a rename.
    """
    try:
        with closing(connect(aside, read_only=True)) as source, closing(connect(path)) as target:
            source.backup(target)
            return
    except sqlite3.DatabaseError as error:
        if os.path.lexists(path) and refused_by_the_disk(error):
            raise
    discard(path)
    _move(aside, path)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def _move(aside: Path, path: Path) -> None:
    """Rename a file, also from another disk."""
    try:
        aside.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        descriptor, name = tempfile.mkstemp(prefix=ASIDE, dir=path.parent)
        os.close(descriptor)
        shutil.copyfile(aside, name)
        os.chmod(name, 0o644)
        os.replace(name, path)


def refused_by_the_disk(error: sqlite3.DatabaseError) -> bool:
    """Return whether the disk refused to read or write the file; False if the file itself is wrong."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & PRIMARY_CODE_MASK not in DAMAGE_CODES


def discard(path: Path) -> None:
    """Remove a database, and the files that SQLite keeps beside it."""
    for beside in ("", *SQLITE_SUFFIXES):
        path.with_name(path.name + beside).unlink(missing_ok=True)


def content_digest(connection: sqlite3.Connection) -> str:
    """Return the SHA-256 over every row of every table, by table and key; equal content gives equal digests."""
    digest = hashlib.sha256()
    for table in tables().values():
        digest.update(table_digest(connection, table))
    return digest.hexdigest()


def table_digest(connection: sqlite3.Connection, table: Table) -> bytes:
    """Return the SHA-256 over every row of one table, by key."""
    digest = hashlib.sha256(f"{table.name}\n".encode())
    for row in _rows(connection, table):
        digest.update(orjson.dumps(row) + b"\n")
    return digest.digest()


def _rows(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[object, ...]]:
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    yield from connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")  # noqa: S608
