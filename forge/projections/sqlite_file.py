"""`history.db` as a file: how it is made, reached, compared and replaced.

Readers open it at any time, so it is changed by SQLite's own transactions (a write-ahead log: readers never wait
and never see half of one), and a rebuilt one is copied over it in one transaction. A rename under an open reader
would leave that reader's log beside another file (https://www.sqlite.org/howtocorrupt.html, 2.4).
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path

import orjson

from forge.projections.schema import SCHEMA_VERSION, Table, creations, tables

PAGE_BYTES = 4096
CACHE_KIB = 2048
BUILD_CACHE_KIB = 8192
"""For a file that is built: with less, pages that take rows of many runs are written and read again and again."""
MAPPED_BYTES = 2**30
"""A reader maps so much of the file: many small reads of a large history then cost no copies."""
APPLICATION_ID = 0x46524748
"""`FRGH`: a Forge history, as `file` and `PRAGMA application_id` show it."""
BUSY_TIMEOUT_S = 30.0
BESIDE = ("-wal", "-shm", "-journal")
PRIMARY_CODE = 0xFF
"""An extended result code's low byte (sqlite.org/rescode.html)."""
UNSOUND = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
    }
)


# The names in the statements below are those of our own tables.


@cache
def upsert(table: Table) -> str:
    """The statement that writes a whole row, new or not; it takes the columns in order."""
    places = ", ".join("?" * len(table.columns))
    return f"INSERT OR REPLACE INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})"  # noqa: S608


def removal(table: Table, column: str | None = None) -> str:
    """The statement that removes a table's rows; where a column is named, those with one value in it."""
    return f"DELETE FROM {table.name}" + (f" WHERE {column} = ?" if column else "")  # noqa: S608


INVALIDATION = "UPDATE benchmarks SET invalidated_seq = ? WHERE seq = ?"
"""Marks the rows of a benchmark with the event that withdrew it."""


@cache
def by_key(table: Table) -> str:
    """The query for one whole row; it takes the primary key's values in order."""
    wanted = " AND ".join(f"{column} = ?" for column in table.key)
    return f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {wanted}"  # noqa: S608


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a file that exists."""
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    if read_only:
        connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    else:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def create(path: Path) -> sqlite3.Connection:
    """Begin a new file that nobody else knows of: nothing is safe in it before `finish`."""
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
    """Make the indexes, which is cheaper once the rows are there."""
    for statement in creations("INDEX"):
        connection.execute(statement)


def finish(connection: sqlite3.Connection, views: Mapping[str, str]) -> None:
    """Add the views, and close the file."""
    for name, query in views.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
    connection.close()


def overwrite(path: Path, aside: Path) -> None:
    """Put the content of `aside` in the place of `path`'s, in one transaction that readers don't notice.

    A file that isn't a database any more has no readers worth the name: it is replaced.
    """
    try:
        with closing(connect(aside, read_only=True)) as source, closing(connect(path)) as target:
            source.backup(target)
            return
    except sqlite3.DatabaseError as error:
        if path.exists() and refused_by_the_disk(error):
            raise
    discard(path)
    aside.replace(path)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def refused_by_the_disk(error: sqlite3.DatabaseError) -> bool:
    """Whether the file couldn't be reached or written, rather than being another file than it should be."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & PRIMARY_CODE not in UNSOUND


def discard(path: Path) -> None:
    """Remove a database with what SQLite keeps beside it."""
    for beside in ("", *BESIDE):
        path.with_name(path.name + beside).unlink(missing_ok=True)


def content_digest(connection: sqlite3.Connection) -> str:
    """SHA-256 over every row of every table, by table and key: equal for equal content, however it was written."""
    digest = hashlib.sha256()
    for table in tables().values():
        digest.update(f"{table.name}\n".encode())
        for row in _rows(connection, table):
            digest.update(orjson.dumps(row) + b"\n")
    return digest.hexdigest()


def _rows(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[object, ...]]:
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    yield from connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")  # noqa: S608
