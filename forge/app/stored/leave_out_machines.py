"""Leaves the evidence of chosen machines out of an answer, as if those machines had never judged or timed anything.

An answer reads `history.db`. A connection to it gets temporary tables and views of the same names, which SQLite finds
first. They leave out what rests on an event of such a machine.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from forge.domain.machine_name import NODE_DIGITS
from forge.errors import UnknownName, UsageError
from forge.events import EnvironmentCaptured
from forge.ledger.store import Ledger
from forge.projections.audit_views import VIEWS
from forge.projections.latest_speedups import derive

EVIDENCE = (
    "CandidateVerified", "CandidateRejected", "BenchmarkRecorded", "BenchmarkFailed", "ReplicationRecorded"
)  # fmt: skip
"""Types of the events that one machine gathers, and that name its environment."""
ROWS = {
    "benchmarks": "SELECT * FROM main.benchmarks WHERE seq NOT IN left_out",
    "rejections": "SELECT * FROM main.rejections WHERE seq NOT IN left_out",
    "claims": "SELECT * FROM main.claims WHERE measured_by_seq IS NULL OR measured_by_seq NOT IN left_out",
    "trials": "SELECT * FROM main.trials WHERE decided_seq IS NULL OR decided_seq NOT IN left_out",
    "kernels": "SELECT * FROM main.kernels WHERE verified_seq NOT IN left_out AND benchmark_seq NOT IN left_out",
    "recent_times": "SELECT * FROM main.recent_times WHERE kernel_id NOT IN (SELECT kernel_id FROM main.kernels "
    "WHERE candidate IN (SELECT candidate FROM main.benchmarks WHERE seq IN left_out))",
}
"""Table -> its rows without the evidence that is left out."""


def environments_of(ledger: Ledger, nodes: Sequence[str]) -> frozenset[str]:
    """Return the environments of nodes and machines that are named by beginnings; raise UnknownName.

    A node is named by its name, a machine with all of its nodes by its digest.
    """
    captured = (one.event for one in ledger.read(types=(EnvironmentCaptured.TYPE,)))
    described = [one for one in captured if isinstance(one, EnvironmentCaptured)]
    known = {one.env_sha256: {one.environment.host_sha256, one.environment.node or ""} - {""} for one in described}
    names = sorted(set().union(*known.values()))
    meant = {untrusted: _named(untrusted, names) for untrusted in nodes}
    return frozenset(env for env, own in known.items() if own & set(meant.values()))


def _named(untrusted: str, names: Sequence[str]) -> str:
    meant = [name for name in names if untrusted and name.startswith(untrusted)]
    if not meant:
        raise UnknownName("machine", untrusted, [name[:NODE_DIGITS] for name in names])
    if len(meant) > 1:
        raise UsageError(f"machine {untrusted[:80]!r}: several begin so; expected more of its digest")
    return meant[0]


def leave_out(connection: sqlite3.Connection, ledger: Ledger, environments: frozenset[str]) -> None:
    """Hide the evidence gathered in these environments, and what rests on it, for this connection alone."""
    connection.execute("CREATE TEMP TABLE left_out (seq INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO temp.left_out VALUES (?)", _places(ledger, environments))
    for name, query in ROWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {query}")
    columns = [str(row[1]) for row in connection.execute("PRAGMA main.table_info(runs)")]
    shown = ", ".join(
        "CASE WHEN verified_seq IN left_out THEN NULL ELSE verified_seq END AS verified_seq"
        if one == "verified_seq"
        else one
        for one in columns
    )
    connection.execute(f"CREATE TEMP VIEW runs AS SELECT {shown} FROM main.runs")  # noqa: S608 (our own columns)
    connection.execute("CREATE TEMP TABLE latest_speedups AS SELECT * FROM main.latest_speedups WHERE 0")
    derive(connection, None)
    for name, query in VIEWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {query}")


def _places(ledger: Ledger, environments: frozenset[str]) -> Iterator[tuple[int]]:
    for one in ledger.read(types=EVIDENCE):
        if getattr(one.event, "env_sha256", None) in environments:
            yield (one.seq,)
