"""Derives how fast each promoted kernel was recently: the mean of its newest times, and of those before.

It is derived from `benchmarks` after all other folds, for the kernels whose measurements changed. So the question
which kernels became slower reads one row for each.
"""

import math
import sqlite3
from collections.abc import Iterator

from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.schema import tables
from forge.projections.sqlite_file import upsert
from forge.projections.state import Cell, State

TYPES = frozenset({"BenchmarkRecorded", "BenchmarkFailed", "BenchmarkInvalidated", "KernelPromoted"})
TIMES_PER_MEAN = 10
"""Number of times in one mean. Chosen; the error of a mean of ten is a third of that of one."""
NAMED_LIMIT = 1000
"""Number of changed candidates that are remembered by name; if there are more, every kernel is derived again. Chosen;
one query names all of them."""
WITHDRAWN = "SELECT DISTINCT candidate FROM benchmarks WHERE seq = ?"
"""Query for the candidate whose benchmark was withdrawn."""
KERNELS = "SELECT kernel_id, candidate, shape, perf_key FROM kernels"
KERNELS_OF = "SELECT kernel_id, candidate, shape, perf_key FROM kernels WHERE candidate = ?"
NEWEST = """
    SELECT candidate_median_ns FROM benchmarks
    WHERE candidate = ? AND shape = ? AND perf_key = ? AND baseline_used = 1 AND invalidated_seq IS NULL
    ORDER BY seq DESC, line DESC LIMIT ?
"""


def take(state: State, line: Line, _: Source) -> None:
    """Remember the candidates whose measurements or kernels this event changed."""
    if state.remeasured is None:
        return
    if line.type == "BenchmarkInvalidated":
        state.remeasured.update(str(name) for (name,) in state.ask(WITHDRAWN, (line.event["benchmark_seq"],)))
    else:
        state.remeasured.add(line.event["candidate"])
    if len(state.remeasured) > NAMED_LIMIT:
        state.remeasured = None


def derive(connection: sqlite3.Connection, candidates: set[str] | None) -> None:
    """Derive the rows of the kernels made of `candidates`, or of all for None; the tables must have their indexes."""
    statement = upsert(tables()["recent_times"])
    connection.executemany(statement, (_row(connection, *kernel) for kernel in _kernels(connection, candidates)))


def _kernels(connection: sqlite3.Connection, candidates: set[str] | None) -> Iterator[tuple[str, str, str, str]]:
    if candidates is None:
        yield from connection.execute(KERNELS)
        return
    for candidate in sorted(candidates):
        yield from connection.execute(KERNELS_OF, (candidate,))


def _row(
    connection: sqlite3.Connection, kernel_id: str, candidate: str, shape: str, perf_key: str
) -> tuple[Cell, ...]:
    """Return a row in the order of the table's columns."""
    times_ns = [
        time_ns for (time_ns,) in connection.execute(NEWEST, (candidate, shape, perf_key, 2 * TIMES_PER_MEAN))
    ]
    newest_ns, earlier_ns = _mean(times_ns[:TIMES_PER_MEAN]), _mean(times_ns[TIMES_PER_MEAN:])
    slower = newest_ns / earlier_ns if newest_ns is not None and earlier_ns is not None else None
    return kernel_id, shape, perf_key, newest_ns, earlier_ns, slower


def _mean(times_ns: list[float]) -> float | None:
    """Return the mean, rounded once, so that every version of SQLite and Python gives the same."""
    return math.fsum(times_ns) / len(times_ns) if times_ns else None
