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
from sqlalchemy import MetaData, Table, bindparam, delete, insert, select, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

PAGE_BYTES = 4096
CACHE_KIB = 2048
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
_DIALECT = sqlite.dialect(paramstyle="named")


@cache
def upsert(table: Table) -> str:
    """The statement that writes a whole row, new or not; it takes the columns in order."""
    return str(insert(table).prefix_with("OR REPLACE").compile(dialect=sqlite.dialect(paramstyle="qmark")))


@cache
def removal(table: Table, column: str | None = None) -> str:
    """The statement that removes a table's rows; where a column is named, those with one value in it."""
    found = delete(table) if column is None else delete(table).where(table.c[column] == bindparam("value"))
    return str(found.compile(dialect=sqlite.dialect(paramstyle="qmark")))


@cache
def invalidation(table: Table) -> str:
    """The statement that marks the rows of the benchmark `b_seq` with `invalidated_seq`."""
    marked = (
        update(table).where(table.c.seq == bindparam("b_seq")).values(invalidated_seq=bindparam("invalidated_seq"))
    )
    return str(marked.compile(dialect=_DIALECT))


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


def create(path: Path, metadata: MetaData, *, version: int) -> sqlite3.Connection:
    """Begin a new file that nobody else knows of: nothing is safe in it before `finish`."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in (
        f"page_size = {PAGE_BYTES}",
        "journal_mode = OFF",
        "synchronous = OFF",
        f"cache_size = -{CACHE_KIB}",
        "locking_mode = EXCLUSIVE",
        f"application_id = {APPLICATION_ID}",
        f"user_version = {version}",
    ):
        connection.execute(f"PRAGMA {setting}")
    for name in sorted(metadata.tables):
        connection.execute(str(CreateTable(metadata.tables[name]).compile(dialect=_DIALECT)))
    return connection


def add_indexes(connection: sqlite3.Connection, metadata: MetaData) -> None:
    """Make the indexes, which is cheaper once the rows are there."""
    for table in metadata.tables.values():
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(str(CreateIndex(index).compile(dialect=_DIALECT)))


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


def content_digest(connection: sqlite3.Connection, metadata: MetaData) -> str:
    """SHA-256 over every row of every table, by table and key: equal for equal content, however it was written."""
    digest = hashlib.sha256()
    for name in sorted(metadata.tables):
        digest.update(f"{name}\n".encode())
        for row in _rows(connection, metadata.tables[name]):
            digest.update(orjson.dumps(row) + b"\n")
    return digest.hexdigest()


def _rows(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[object, ...]]:
    yield from connection.execute(str(select(*table.columns).order_by(*table.primary_key).compile(dialect=_DIALECT)))


def by_key(table: Table) -> str:
    """The query for one whole row; it takes the primary key's values in order."""
    wanted = (column == bindparam(column.name) for column in table.primary_key)
    return str(select(*table.columns).where(*wanted).compile(dialect=sqlite.dialect(paramstyle="qmark")))
