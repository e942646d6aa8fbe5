"""Derives each candidate's current speed: its newest measurement that counts, for each task and kind of machine.

It is derived from `benchmarks` after all other folds, for the candidates whose measurements changed. So an audit over
machines, tasks and authors reads one row for each of them instead of the whole history.
"""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter

from forge.projections.schema import Table, tables
from forge.projections.sqlite_file import removal, upsert
from forge.projections.state import Cell

KEY = ("candidate", "task_id", "op", "gpu", "dtype", "shape", "baseline", "perf_key")
"""Columns that identify a row: one row for each combination."""
REST = (
    *("driver", "torch", "triton", "baseline_used", "verdict", "seq", "line", "source"),
    *("candidate_median_ns", "baseline_median_ns", "speedup", "low", "high", "floor_fraction", "recorded_at"),
)
"""Other columns, copied from `benchmarks`."""
COUNTED = f"""
    SELECT {", ".join((*KEY, *REST))} FROM benchmarks
    WHERE invalidated_seq IS NULL AND speedup IS NOT NULL AND op IS NOT NULL AND perf_key IS NOT NULL
      AND (verdict = 'accepted' OR reason_code = 'TOO_SLOW')
"""  # noqa: S608 (names of our own columns)
COUNTED_OF = f"{COUNTED} AND candidate = ? ORDER BY seq, line"
ALL_COUNTED = f"{COUNTED} ORDER BY candidate, seq, line"


def derive(connection: sqlite3.Connection, candidates: set[str] | None) -> None:
    """Derive the rows of `candidates`, or of all for None; the tables must have their indexes."""
    table = tables()["latest_speedups"]
    if candidates is None:
        connection.execute(removal(table))
    for candidate in sorted(candidates or ()):
        connection.execute(removal(table, "candidate"), (candidate,))
    found = (row for measured in _measured(connection, candidates) for row in _newest(measured))
    connection.executemany(upsert(table), map(_in_order(table), found))


def _in_order(table: Table) -> Callable[[tuple[Cell, ...]], tuple[Cell, ...]]:
    """Return a function that puts a row of `_newest` into the order of the table's columns."""
    given = (*KEY, *REST, "measurements")
    return itemgetter(*(given.index(column) for column in table.columns))


def _measured(connection: sqlite3.Connection, candidates: set[str] | None) -> Iterator[list[tuple[Cell, ...]]]:
    """Yield the measurements that count, for one candidate at a time, oldest first."""
    if candidates is None:
        for _, group in groupby(connection.execute(ALL_COUNTED), key=itemgetter(0)):
            yield list(group)
        return
    for candidate in sorted(candidates):
        yield connection.execute(COUNTED_OF, (candidate,)).fetchall()


def _newest(measured: list[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """Yield the last row of each key, with the number of rows that the key had."""
    last: dict[tuple[Cell, ...], tuple[Cell, ...]] = {}
    counts: dict[tuple[Cell, ...], int] = {}
    for row in measured:
        key = row[: len(KEY)]
        last[key] = row
        counts[key] = counts.get(key, 0) + 1
    return ((*row, counts[key]) for key, row in last.items())
