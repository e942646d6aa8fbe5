"""Holds the tables of `history.db` for the folds: rows are read and changed here, and written together.

A fold's whole state is in these tables, so nothing else must be kept between two runs. Recently used rows stay in
memory until `flush`; which rows these are doesn't change what is written.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import itemgetter

from forge.ledger.replay import Line
from forge.projections.schema import tables
from forge.projections.sqlite_file import INVALIDATION, by_key, upsert

Cell = str | int | float | bytes | None
Row = dict[str, Cell]
Key = tuple[Cell, ...]
HELD_ROWS = 500
"""Number of changed rows held in memory before they are written; at most as many written rows stay cached. Chosen;
more rows take more memory, and fewer are written again and again."""


class State:
    """The tables during one catch-up. `get` returns the row itself: change it, then `put` it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known = _no_rows()
        self._earlier = _no_rows()
        """Rows that were written and needn't be read again."""
        self._changed: dict[str, dict[Key, Row]] = {name: {} for name in tables()}
        self._added: dict[str, list[Row]] = {name: [] for name in tables()}
        self._held = 0
        self.changed: Line | None = None
        """Newest event that changed what the registry's documents show; None if none did."""
        self.remeasured: set[str] | None = set()
        """Candidates whose measurements or kernels changed; None if they are too many to remember."""

    def get(self, table: str, *key: Cell) -> Row | None:
        """Return the row with this primary key."""
        known = self._known[table]
        if key not in known:
            earlier = self._earlier[table]
            known[key] = earlier[key] if key in earlier else self._read(table, key)
            self._held += 1
        return known[key]

    def _read(self, table: str, key: Key) -> Row | None:
        sql, columns = _select(table)
        found = self._connection.execute(sql, key).fetchone()
        return dict(zip(columns, found, strict=True)) if found else None

    def put(self, table: str, row: Row, *key: Cell) -> None:
        """Write the row with this primary key, new or changed."""
        known = self._known[table]
        if key not in known:
            self._held += 1
        known[key] = row
        self._changed[table][key] = row

    def add(self, table: str, row: Row) -> None:
        """Write a new row that no fold looks up."""
        self._added[table].append(row)
        self._held += 1

    def ask(self, sql: str, values: Sequence[Cell] | Mapping[str, Cell] = ()) -> list[tuple[Cell, ...]]:
        """Return the rows of a query, including everything put and added so far."""
        self.flush()
        return self._connection.execute(sql, values).fetchall()

    def registry_changed(self, line: Line) -> None:
        """Record that the published documents change with this event."""
        self.changed = line

    def mark_invalidated(self, benchmark_seq: int, seq: int) -> None:
        """Write the withdrawing event into every row of a benchmark."""
        self.flush()
        self._connection.execute(INVALIDATION, (seq, benchmark_seq))
        self._earlier["benchmarks"].clear()

    def settle(self) -> None:
        """Flush if enough rows are held."""
        if self._held >= HELD_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what was put and added, and forget the rows that weren't used since the last flush."""
        for table, added in self._added.items():
            rows = [*self._changed[table].values(), *added]
            if rows:
                sql, cells = _writing(table)
                self._connection.executemany(sql, map(cells, rows))
                self._changed[table].clear()
                added.clear()
        self._earlier, self._known = self._known, _no_rows()
        self._held = 0


def _no_rows() -> dict[str, dict[Key, Row | None]]:
    return {name: {} for name in tables()}


@cache
def _select(name: str) -> tuple[str, tuple[str, ...]]:
    table = tables()[name]
    return by_key(table), table.columns


@cache
def _writing(name: str) -> tuple[str, Callable[[Row], tuple[Cell, ...]]]:
    table = tables()[name]
    return upsert(table), itemgetter(*table.columns)
