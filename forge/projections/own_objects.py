"""Compares what a `history.db` consists of with what Forge makes: its tables, indexes and views, and no triggers.

A view in a table's place can answer anything, or never end. So nothing else is asked before this.
"""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from forge.projections.audit_views import VIEWS
from forge.projections.sqlite_file import add_indexes, add_views, create

_OBJECTS = "SELECT name, type, tbl_name, sql FROM sqlite_schema"
Objects = frozenset[tuple[object, ...]]
"""Name, type, table and statement of each object."""


def altered_objects(published: sqlite3.Connection) -> list[str]:
    """Return the names of the tables, indexes, views and triggers that Forge makes otherwise, or not at all."""
    return sorted({str(name) for name, *_ in _objects(published) ^ _own()})


@cache
def _own() -> Objects:
    with closing(create(Path(":memory:"))) as made:
        add_indexes(made)
        add_views(made, VIEWS)
        return _objects(made)


def _objects(connection: sqlite3.Connection) -> Objects:
    return frozenset(connection.execute(_OBJECTS))
