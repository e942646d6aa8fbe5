"""Derives each candidate's current speed: its newest measurement that counts, for each task and kind of machine.

It is derived from `benchmarks` after all other folds, for the candidates whose measurements changed. So an audit over
machines, tasks and authors reads one row for each of them instead of the whole history.
"""

import sqlite3

from forge.projections.schema import tables
from forge.projections.sqlite_file import insertion, removal

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


def newest(condition: str = "1") -> str:
    """Return the query for the rows of this table, from the measurements that meet the condition and count.

    Of each key it gives the last measurement, and how many there are.
    """
    of_key = f"PARTITION BY {', '.join(KEY)}"
    return f"""
        SELECT {", ".join(tables()["latest_speedups"].columns)} FROM (
            SELECT *, count(*) OVER ({of_key}) AS measurements,
                   row_number() OVER ({of_key} ORDER BY seq DESC, line DESC) AS place
            FROM ({COUNTED} AND {condition})
        ) WHERE place = 1
    """  # noqa: S608 (names of our own columns)


def derive(connection: sqlite3.Connection, candidates: set[str] | None) -> None:
    """Derive the rows of `candidates`, or of all for None; the tables must have their indexes."""
    table = tables()["latest_speedups"]
    if candidates is None:
        connection.execute(removal(table))
        connection.execute(insertion(table, newest()))
    again = insertion(table, newest("candidate = ?"))
    for candidate in sorted(candidates or ()):
        connection.execute(removal(table, "candidate"), (candidate,))
        connection.execute(again, (candidate,))
