"""Reads events of some types: those of this ledger, and those of each ledger that was imported into it."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from forge.ledger.audit.report import AuditProblem

Row = tuple[int, bytes, bytes]
"""An event's place, type and payload."""


def imported_ledgers(connection: sqlite3.Connection) -> list[bytes]:
    """Return the id of each imported ledger."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'foreign_event'").fetchone():
        return []
    return [
        ledger_id for (ledger_id,) in connection.execute("SELECT DISTINCT ledger_id FROM foreign_event").fetchall()
    ]


def rows_of(connection: sqlite3.Connection, ledger_id: bytes | None, types: Sequence[str]) -> Iterable[Row]:
    """Return the events of these types in order; `ledger_id` names an imported ledger, None this one."""
    wanted = f"type IN ({', '.join(map(repr, types))})"
    if ledger_id is None:
        return connection.execute(f"SELECT seq, type, payload FROM event WHERE {wanted} ORDER BY seq")  # noqa: S608
    query = f"SELECT seq, type, payload FROM foreign_event WHERE ledger_id = ? AND {wanted} ORDER BY seq"  # noqa: S608
    return connection.execute(query, (ledger_id,))


def problem_of(ledger_id: bytes, problem: AuditProblem) -> AuditProblem:
    """Return the problem of an imported ledger's event as one of this ledger."""
    return replace(problem, seq=None, what=f"event {problem.seq} of {ledger_id.decode()}: {problem.what}")
