"""A SQLite file as a pure function of its rows.

Built in memory with a fixed page size, tables and indexes by name, rows in the order given. What SQLite
writes of itself is taken out: bytes 96 to 99 of the header, the version of the library that wrote the file,
which readers don't interpret (https://www.sqlite.org/fileformat2.html, 1.3.17).
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

from sqlalchemy import MetaData, insert
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

PAGE_BYTES = 4096
APPLICATION_ID = 0x46524748
"""`FRGH`: a Forge history, as `file` and `PRAGMA application_id` show it."""
WRITER_VERSION = slice(96, 100)


def sqlite_file(
    metadata: MetaData,
    rows: Mapping[str, Sequence[Mapping[str, str | int | float | None]]],
    *,
    version: int,
) -> bytes:
    """Render `rows` (table name -> rows) as a database of `metadata`'s tables; `version` is user_version.

    Every table must have an entry in `rows` and every row all of its table's columns: a KeyError or a
    sqlite3.Error is a mistake in the projection.
    """
    dialect = sqlite.dialect(paramstyle="named")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("BEGIN")
        for name in sorted(metadata.tables):
            table = metadata.tables[name]
            connection.execute(str(CreateTable(table).compile(dialect=dialect)))
            connection.executemany(str(insert(table).compile(dialect=dialect)), rows[name])
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                connection.execute(str(CreateIndex(index).compile(dialect=dialect)))
        connection.execute("COMMIT")
        content = bytearray(connection.serialize())
    content[WRITER_VERSION] = bytes(4)
    return bytes(content)
