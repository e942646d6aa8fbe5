"""The tables of `history.db` as the folds see them: rows are read and changed here, and written together.

A fold's whole state is in these tables, so nothing else has to be kept between two catch-ups. Rows that were
touched lately stay in memory until `flush`; which they are changes nothing in what is written.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import itemgetter

from forge.ledger.replay import Line
from forge.projections.sqlite_file import by_key, invalidation, upsert
from forge.projections.tables import TABLES

Cell = str | int | float | bytes | None
Row = dict[str, Cell]
HELD_ROWS = 500
"""So many rows are held in memory at most, between two events."""


class State:
    """The tables, for one catch-up. `get` gives the row itself: change it, then `put` it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[Cell, ...], Row | None] = {}
        self._changed: dict[str, dict[tuple[Cell, ...], Row]] = {name: {} for name in TABLES.metadata.tables}
        self._added: dict[str, list[Row]] = {name: [] for name in TABLES.metadata.tables}
        self._held = 0
        self.changed: Line | None = None
        """The newest event that changed what the registry's documents show, if one did."""
        self.remeasured: set[str] | None = set()
        """Candidates whose measurements or kernels changed; None once they are too many to name."""

    def get(self, table: str, *key: Cell) -> Row | None:
        """The row with this primary key."""
        name = (table, *key)
        if name not in self._known:
            sql, columns = _select(table)
            found = self._connection.execute(sql, key).fetchone()
            self._known[name] = dict(zip(columns, found, strict=True)) if found else None
            self._held += 1
        return self._known[name]

    def put(self, table: str, row: Row, *key: Cell) -> None:
        """Write the row of this primary key, new or changed."""
        name = (table, *key)
        if name not in self._known:
            self._held += 1
        self._known[name] = row
        self._changed[table][key] = row

    def add(self, table: str, row: Row) -> None:
        """Write a new row that no fold looks up."""
        self._added[table].append(row)
        self._held += 1

    def ask(self, sql: str, values: Sequence[Cell] | Mapping[str, Cell] = ()) -> list[tuple[Cell, ...]]:
        """The rows of a query, over everything put and added so far."""
        self.flush()
        return self._connection.execute(sql, values).fetchall()

    def registry_changed(self, line: Line) -> None:
        """Note that the published documents show something new from here on."""
        self.changed = line

    def mark_invalidated(self, benchmark_seq: int, seq: int) -> None:
        """Write into every row of a benchmark which event withdrew it."""
        self.flush()
        table = TABLES.metadata.tables["benchmarks"]
        self._connection.execute(invalidation(table), {"b_seq": benchmark_seq, "invalidated_seq": seq})

    def settle(self) -> None:
        """Flush once enough rows are held."""
        if self._held >= HELD_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what was put and added, and forget it."""
        for table, added in self._added.items():
            rows = [*self._changed[table].values(), *added]
            if rows:
                sql, cells = _writing(table)
                self._connection.executemany(sql, map(cells, rows))
                self._changed[table].clear()
                added.clear()
        self._known.clear()
        self._held = 0


@cache
def _select(name: str) -> tuple[str, tuple[str, ...]]:
    table = TABLES.metadata.tables[name]
    return by_key(table), tuple(table.columns.keys())


@cache
def _writing(name: str) -> tuple[str, Callable[[Row], tuple[Cell, ...]]]:
    table = TABLES.metadata.tables[name]
    return upsert(table), itemgetter(*table.columns.keys())
