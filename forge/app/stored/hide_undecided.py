"""Keeps the figures of undecided runs out of an answer over the whole history.

An answer reads `history.db`. A connection to it gets temporary views of the names of its tables, which SQLite finds
first. There, a run in another state than the wanted ones has its candidate, and nothing that was found of it. The
views cost nothing before they are read, and an index serves a question for few rows through them as well.
"""

import sqlite3
from collections.abc import Set as AbstractSet

from forge.projections.audit_views import VIEWS
from forge.projections.latest_speedups import newest

FOUND = ("ended", "reason", "against", "speedup", "low", "high", "decided_seq", "closed_seq")
"""Columns of an experiment that say what was found."""
HIDDEN_ROWS = ("benchmarks", "rejections", "claims", "experiments")
"""Tables and views with a row for each thing that was found of a candidate."""
DECIDED = "EXISTS (SELECT 1 FROM main.runs AS run WHERE run.run_id = own.run_id AND run.state IN ({states}))"
"""Condition that the run of a row of `own` is decided."""
OPEN = """EXISTS (
    SELECT 1 FROM main.candidates AS handed JOIN main.runs AS run USING (run_id)
    WHERE handed.candidate = {table}.candidate AND run.state NOT IN ({states})
)"""
"""Condition that the candidate of a row is in an undecided run. The same bytes may be in a decided run as well."""


def hide_undecided(connection: sqlite3.Connection, decided: AbstractSet[str]) -> None:
    """Hide what was found in runs whose state isn't one of `decided`, for this connection alone."""
    states = ", ".join(f"'{state}'" for state in sorted(decided))
    is_decided = DECIDED.format(states=states)
    columns = [str(row[1]) for row in connection.execute("PRAGMA main.table_info(trials)")]
    bare = ", ".join(f"NULL AS {one}" if one in FOUND else one for one in columns)
    views = {name: f"SELECT * FROM main.{name} AS own WHERE {is_decided}" for name in HIDDEN_ROWS}  # noqa: S608
    views["trials"] = f"""
        SELECT * FROM main.trials AS own WHERE {is_decided}
        UNION ALL SELECT {bare} FROM main.trials AS own WHERE NOT {is_decided}
    """  # noqa: S608 (our own columns)
    views["latest_speedups"] = f"""
        SELECT * FROM main.latest_speedups AS own WHERE NOT {OPEN.format(table="own", states=states)}
        UNION ALL {newest(OPEN.format(table="benchmarks", states=states))}
    """  # noqa: S608 (our own columns)
    for name, query in (VIEWS | views).items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {query}")
