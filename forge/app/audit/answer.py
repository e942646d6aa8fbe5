"""Defines what an audit answers: rows, what they were counted over, and what they don't show."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from forge.app.task_values import possible_values, usual_name
from forge.errors import UnknownName, UsageError

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
"""Filter -> its name for people, the query for its values, and the command that lists them if they may be many."""
Filter = Literal["op", "gpu", "dtype", "language", "author", "gate", "task"]


COLD = (
    "figures are of the cold regime; `forge audit sql` has those of the resident one: columns resident_... of kernels"
)
"""Note of an answer about speeds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with the same columns. `notes` say what a figure was counted over; `more` is shown only in the document.

    `shown` names the columns of the table for people, in its order; all columns if it is empty.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    shown: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """Return one JSON document, in which the cells of a row have the names of their columns."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"rows": rows, "notes": list(self.notes), **self.more}

    def column(self, name: str) -> list[Cell]:
        """Return one column, row by row."""
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


def columns_and_rows(
    connection: sqlite3.Connection, sql: str, values: Mapping[str, Cell] | Sequence[Cell]
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Return a query's columns and rows."""
    cursor = connection.execute(sql, values)
    return tuple(column[0] for column in cursor.description), tuple(cursor.fetchall())


def named_rows(
    connection: sqlite3.Connection, sql: str, values: Mapping[str, Cell] | Sequence[Cell] = ()
) -> list[Named]:
    """Return a query's rows, with cells by name."""
    columns, rows = columns_and_rows(connection, sql, values)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def number(cell: Cell) -> float:
    """Return the number in a cell that always has one."""
    assert isinstance(cell, float | int)
    return float(cell)


def where(connection: sqlite3.Connection, wanted: Mapping[Filter, str | None]) -> tuple[str, dict[str, Cell]]:
    """Return the SQL condition for the wanted rows, and its parameters; raise UnknownName for an unknown value."""
    given = {name: known_value(connection, name, value) for name, value in wanted.items() if value is not None}
    values: dict[str, Cell] = {str(name): value for name, value in given.items()}
    return " AND ".join(["1", *(f"{name} = :{name}" for name in given)]), values


def known_value(connection: sqlite3.Connection, name: Filter, untrusted_value: str) -> str:
    """Return a filter's value as the history has it, a GPU or dtype by any of its names.

    Raises UnknownName for a value that the history doesn't have and no task could have.
    """
    kind, query, listed_by = FILTERS[name]
    recorded = sorted(found for (found,) in connection.execute(query) if found is not None)
    value = untrusted_value
    if value not in recorded:
        value = usual_name(name, value)
    if recorded and value not in recorded and value not in possible_values(name):
        raise UnknownName(kind, untrusted_value, recorded, listed_by=listed_by)
    return value


def candidate_named(connection: sqlite3.Connection, beginning: str) -> str:
    """Return the candidate whose digest begins so; raise UsageError if there is none, or more than one."""
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
            f"{count} a digest that begins with {beginning[:80]!r}: expected a beginning that one digest has",
            hint='forge audit sql "SELECT candidate, author, op, gpu FROM candidates"',
        )
    return found[0]
