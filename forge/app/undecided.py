"""Keeps the figures of undecided runs out of an answer over the whole history.

An answer reads `history.db`. A connection to it gets temporary tables and views of the same names, which SQLite finds
first. There, a run in another state than the wanted ones has its candidate, and nothing that was found of it.
"""

import sqlite3
from collections.abc import Set as AbstractSet

from forge.projections.audit_views import VIEWS
from forge.projections.latest_speedups import derive

FOUND = ("ended", "reason", "against", "speedup", "low", "high", "decided_seq", "closed_seq")
"""Columns of an experiment that say what was found."""
HIDDEN_ROWS = ("benchmarks", "rejections", "claims")
"""Tables with a row for each thing that was found of a candidate."""


def hide_undecided(connection: sqlite3.Connection, decided: AbstractSet[str]) -> None:
    """Hide what was found in runs whose state isn't one of `decided`, for this connection alone."""
    states = ", ".join("?" * len(decided))
    connection.execute(
        "CREATE TEMP TABLE undecided AS SELECT run_id, trial.candidate FROM main.runs "  # noqa: S608 (question marks)
        f"JOIN main.trials AS trial USING (run_id) WHERE state NOT IN ({states})",
        sorted(decided),
    )
    candidates = {str(one) for (one,) in connection.execute("SELECT DISTINCT candidate FROM temp.undecided")}
    if not candidates:
        return
    is_open = "run_id IN (SELECT run_id FROM temp.undecided)"
    for name in HIDDEN_ROWS:
        connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} WHERE NOT {is_open}")  # noqa: S608
    columns = [str(row[1]) for row in connection.execute("PRAGMA main.table_info(trials)")]
    shown = ", ".join(
        f"CASE WHEN {is_open} THEN NULL ELSE {one} END AS {one}" if one in FOUND else one for one in columns
    )
    connection.execute(f"CREATE TEMP VIEW trials AS SELECT {shown} FROM main.trials")  # noqa: S608 (our own columns)
    _derive_speedups(connection, candidates)
    for name, query in VIEWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {query}")


def _derive_speedups(connection: sqlite3.Connection, candidates: set[str]) -> None:
    """Derive the speeds of these candidates anew, from what isn't hidden: the same bytes may have an older speed."""
    connection.execute("CREATE TEMP TABLE latest_speedups AS SELECT * FROM main.latest_speedups WHERE 0")
    derive(connection, candidates)
    connection.execute("ALTER TABLE temp.latest_speedups RENAME TO speedups_again")
    connection.execute(
        "CREATE TEMP VIEW latest_speedups AS SELECT * FROM main.latest_speedups "
        "WHERE candidate NOT IN (SELECT candidate FROM temp.undecided) UNION ALL SELECT * FROM temp.speedups_again"
    )
