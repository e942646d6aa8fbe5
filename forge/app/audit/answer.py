"""What an audit answers: rows, what they were counted over, and what they don't say."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from forge.errors import UnknownName, UsageError
from forge.platforms.gpus import slug_of

Cell = str | int | float | None
Named = dict[str, Cell]
FILTERS: dict[str, tuple[str, str, str | None]] = {
    "op": ("operation", "SELECT DISTINCT op FROM tasks", None),
    "gpu": ("GPU", "SELECT DISTINCT gpu FROM tasks", None),
    "dtype": ("element type", "SELECT DISTINCT dtype FROM tasks", None),
    "language": ("language", "SELECT DISTINCT language FROM tasks", None),
    "author": ("author", "SELECT DISTINCT author FROM candidates", "forge audit effectiveness --by author"),
    "gate": ("gate that refused", "SELECT DISTINCT gate FROM rejections", None),
    "task": ("task", "SELECT task_id FROM tasks", "forge task list"),
}
"""Filter -> what it is called, the values that the history has, and what lists them where they may be many."""
Filter = Literal["op", "gpu", "dtype", "language", "author", "gate", "task"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of one shape. `notes` say what a figure was counted over; `more` is what only the document shows.

    `shown` names the columns of the table that people get, in its order; all of them where it is empty.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    shown: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """As one JSON document: a row's cells by the names of their columns."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"rows": rows, "notes": list(self.notes), **self.more}

    def column(self, name: str) -> list[Cell]:
        """One column, row by row."""
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


def asked(
    connection: sqlite3.Connection, sql: str, values: Mapping[str, Cell] | Sequence[Cell] = ()
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """A query's columns and rows."""
    cursor = connection.execute(sql, values)
    return tuple(column[0] for column in cursor.description), tuple(cursor.fetchall())


def named(connection: sqlite3.Connection, sql: str, values: Mapping[str, Cell] | Sequence[Cell] = ()) -> list[Named]:
    """A query's rows, their cells by name."""
    columns, rows = asked(connection, sql, values)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def where(connection: sqlite3.Connection, wanted: Mapping[Filter, str | None]) -> tuple[str, dict[str, Cell]]:
    """The condition that leaves what is wanted, and its values; raise UnknownName for what the history never had."""
    given = {name: known(connection, name, value) for name, value in wanted.items() if value is not None}
    values: dict[str, Cell] = {str(name): value for name, value in given.items()}
    return " AND ".join(["1", *(f"{name} = :{name}" for name in given)]), values


def known(connection: sqlite3.Connection, name: Filter, untrusted_value: str) -> str:
    """A filter's value as the history has it, a GPU by any of its names; raise UnknownName if it never had it."""
    kind, query, listed_by = FILTERS[name]
    recorded = sorted(found for (found,) in connection.execute(query) if found is not None)
    value = slug_of(untrusted_value) if name == "gpu" and untrusted_value not in recorded else untrusted_value
    if recorded and value not in recorded:
        raise UnknownName(kind, untrusted_value, recorded, listed_by=listed_by)
    return value


def candidate_named(connection: sqlite3.Connection, beginning: str) -> str:
    """The candidate whose digest begins so; raise UsageError if there is none, or more than one."""
    found = [
        str(name)
        for (name,) in connection.execute(
            "SELECT DISTINCT candidate FROM candidates WHERE substr(candidate, 1, ?) = ? LIMIT 2",
            (len(beginning), beginning),
        )
    ]
    if len(found) != 1 or not beginning:
        count = "no candidate has" if not found else "several candidates have"
        raise UsageError(
            f"{count} a digest that begins with {beginning[:80]!r}: expected as much of it as tells it apart",
            hint='forge audit sql "SELECT candidate, author, op, gpu FROM candidates"',
        )
    return found[0]
