"""How a promoted kernel does lately: the mean of its newest times, beside that of those before.

It is derived from `benchmarks` once everything else is folded, for the kernels whose measurements changed, so that
the question which kernels became slower reads one row each.
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
TIMES = 10
"""So many times make one mean."""
MOST_NAMED = 1000
"""Changed candidates that are remembered by name; beyond, every kernel is derived anew."""
WITHDRAWN = "SELECT DISTINCT candidate FROM benchmarks WHERE seq = ?"
KERNELS = "SELECT kernel_id, candidate, shape, perf_key FROM kernels"
KERNELS_OF = "SELECT kernel_id, candidate, shape, perf_key FROM kernels WHERE candidate = ?"
NEWEST = """
    SELECT candidate_median_ns FROM benchmarks
    WHERE candidate = ? AND shape = ? AND perf_key = ? AND baseline_used = 1 AND invalidated_seq IS NULL
    ORDER BY seq DESC, line DESC LIMIT ?
"""


def take(state: State, line: Line, _: Source) -> None:
    """Note whose measurements, or whose kernels, this event changed."""
    if state.remeasured is None:
        return
    if line.type == "BenchmarkInvalidated":
        state.remeasured.update(str(name) for (name,) in state.ask(WITHDRAWN, (line.event["benchmark_seq"],)))
    else:
        state.remeasured.add(line.event["candidate"])
    if len(state.remeasured) > MOST_NAMED:
        state.remeasured = None


def derive(connection: sqlite3.Connection, candidates: set[str] | None) -> None:
    """Write the rows of the kernels made of `candidates`; of all kernels for None. Wants the tables' indexes."""
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
    """In the order of the table's columns."""
    times_ns = [time_ns for (time_ns,) in connection.execute(NEWEST, (candidate, shape, perf_key, 2 * TIMES))]
    newest_ns, earlier_ns = _mean(times_ns[:TIMES]), _mean(times_ns[TIMES:])
    slower = newest_ns / earlier_ns if newest_ns is not None and earlier_ns is not None else None
    return kernel_id, shape, perf_key, newest_ns, earlier_ns, slower


def _mean(times_ns: list[float]) -> float | None:
    """Rounded once, so that no version of SQLite or Python adds up to something else."""
    return math.fsum(times_ns) / len(times_ns) if times_ns else None
