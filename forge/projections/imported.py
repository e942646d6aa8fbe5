"""Reads another ledger's rows as its own readers would: each payload as its event, and every fold.

A promotion there is no kernel here. But what it says is shown as evidence, so its own evidence must support it. The
rows are copied into a temporary database in the form of a ledger, which gives them the constraints of one.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.audit.report import AuditProblem, AuditReport
from forge.ledger.chain import FORMAT, StoredRow, genesis_hash
from forge.ledger.statements import COLUMNS, SELECT_FOREIGN
from forge.projections.reader_refusals import are_sound, refusals_of

_FORM = f"""
CREATE TABLE ledger_meta (one, ledger_id, origin, format, genesis_hash);
CREATE TABLE event ({COLUMNS});
CREATE UNIQUE INDEX event_seq ON event (seq);
CREATE UNIQUE INDEX event_id ON event (event_id);
CREATE UNIQUE INDEX event_key ON event (idempotency_key);
"""
_COPY_META = "INSERT INTO ledger_meta VALUES (1, ?, '', ?, ?)"
_COPY_ROW = f"INSERT INTO event VALUES ({', '.join('?' * len(StoredRow._fields))})"  # noqa: S608 (placeholders only)
_LEDGERS = "SELECT DISTINCT ledger_id FROM foreign_event ORDER BY ledger_id"
"""Query for the ids of the imported ledgers."""
_HAS_FOREIGN = "SELECT 1 FROM sqlite_master WHERE name = 'foreign_event'"
"""Query that finds the table of imported events, which an older ledger lacks."""


def imported_refusals(path: Path, *, after: AuditReport) -> Iterator[AuditProblem]:
    """Yield what readers would refuse of the ledgers that were imported into the one at `path`.

    There is nothing to tell if the audit `after` found rows that don't follow from each other.
    """
    if not are_sound(after):
        return
    try:
        with closing(connect_to_read(path, timeout_s=30)) as connection:
            connection.execute("BEGIN")
            if not connection.execute(_HAS_FOREIGN).fetchone():
                return
            for (ledger_id,) in connection.execute(_LEDGERS).fetchall():
                rows = map(StoredRow._make, connection.execute(SELECT_FOREIGN, (ledger_id,)))
                for problem in _refusals(ledger_id, rows):
                    what = f"event {problem.seq} of {ledger_id}: {problem.what}"
                    yield AuditProblem(None, what, problem.expected, problem.found)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield AuditProblem(None, "imported events", "rows that readers can read", str(error)[:300])


def first_refusal(ledger_id: str, rows: Iterable[StoredRow]) -> str | None:
    """Return what readers would refuse first in a ledger with these rows; None if they accept all of it."""
    try:
        found = next(_refusals(ledger_id, rows), None)
    except sqlite3.IntegrityError as error:
        return f"two events have the same id or key ({error})"
    return None if found is None else f"event {found.seq}, {found.what}: {found.found}"


def _refusals(ledger_id: str, rows: Iterable[StoredRow]) -> Iterator[AuditProblem]:
    with _spooled(ledger_id, rows) as copy:
        yield from refusals_of(copy, Path(ledger_id))


@contextmanager
def _spooled(ledger_id: str, rows: Iterable[StoredRow]) -> Iterator[sqlite3.Connection]:
    """Yield a temporary database with these rows; SQLite moves it to the disk if it grows, and removes it."""
    with closing(sqlite3.connect("", isolation_level=None)) as copy:
        copy.executescript(_FORM)
        copy.execute("BEGIN")
        copy.execute(_COPY_META, (ledger_id, FORMAT, genesis_hash(ledger_id)))
        copy.executemany(_COPY_ROW, rows)
        copy.execute("COMMIT")
        yield copy
