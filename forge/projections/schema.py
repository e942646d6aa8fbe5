"""Reads the tables of `history.db` from `schema.sql`, without its comments.

They stand there in SQL, since a command that publishes should load neither SQLModel nor a compiler of declarations.
"""

import re
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("schema.sql")


class Table(NamedTuple):
    """Names that a statement about one table needs."""

    name: str
    columns: tuple[str, ...]
    """Columns in their order."""
    key: tuple[str, ...]
    """Columns of the primary key, in its order."""


@cache
def creations(what: str) -> tuple[str, ...]:
    """Return the statements that create every TABLE, or every INDEX."""
    written = re.sub(r"^ *--.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return tuple(re.findall(rf"^CREATE {what} .*?(?=;$)", written, re.DOTALL | re.MULTILINE))


@cache
def tables() -> dict[str, Table]:
    """Return every table by its name, in the order of the names."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in creations("TABLE"):
            connection.execute(statement)
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        return {name: _described(connection, name) for (name,) in names.fetchall()}


def _described(connection: sqlite3.Connection, name: str) -> Table:
    found = connection.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
    key = sorted((place, column) for column, place in found if place)
    return Table(name, tuple(column for column, _ in found), tuple(column for _, column in key))
