"""Checks the rows of imported ledgers: each ledger is derived again and compared with what LedgerImported events say.

An imported ledger is sound under three conditions. Its rows follow from each other. They end where the last
LedgerImported event says. At each such event, the root was the one that the other ledger's key signed.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from forge.errors import UsageError
from forge.ledger.audit.envelope import COLUMNS, AuditedRow
from forge.ledger.audit.evidence import EvidenceCheck
from forge.ledger.audit.report import PROBLEM_LIMIT, AuditProblem
from forge.ledger.audit.rows import Reading
from forge.ledger.audit.signatures import STATING_A_ROOT, GivenCheckpoint, sizes_in
from forge.ledger.audit.tree import StoredNodes

Import = tuple[int, Mapping[str, object]]
"""A LedgerImported event's place, and its payload."""


class ForeignLedgers:
    """The check of every imported ledger's rows, in one pass; `runs` is the folder of the blobs that they name."""

    def __init__(self, runs: Path | None) -> None:
        self.events = 0
        self._runs = runs

    def problems(self, connection: sqlite3.Connection, imports: Sequence[Import]) -> list[AuditProblem]:
        """Return the problems of the imported rows; `imports` are the LedgerImported events."""
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'foreign_event'").fetchone():
            return []
        stored = [row[0].decode() for row in connection.execute("SELECT DISTINCT ledger_id FROM foreign_event")]
        named = {str(payload.get("foreign_ledger_id")) for _, payload in imports}
        found: list[AuditProblem] = []
        for ledger_id in sorted(named.union(stored)):
            said = [one for one in imports if one[1].get("foreign_ledger_id") == ledger_id]
            if not said:
                found.append(AuditProblem(None, f"events of {ledger_id}", "a LedgerImported event", "none"))
                continue
            found += self._problems_of(connection, ledger_id, said)
        return found

    def _problems_of(
        self, connection: sqlite3.Connection, ledger_id: str, said: Sequence[Import]
    ) -> list[AuditProblem]:
        evidence = EvidenceCheck(self._runs, own=False) if self._runs is not None else None
        reading = Reading(evidence)
        sizes = {size for _, payload in said if (size := _size(payload)) is not None}
        query = f"SELECT payload FROM foreign_event WHERE ledger_id = ? AND type IN ({STATING_A_ROOT})"  # noqa: S608
        sizes |= sizes_in(payload for (payload,) in connection.execute(query, (ledger_id,)))
        reading.start(ledger_id, str(said[-1][1].get("origin")), sizes, StoredNodes(None))
        found: list[AuditProblem] = []
        for row in _rows(connection, ledger_id):
            for problem in reading.problems(row):
                what = f"event {problem.seq} of {ledger_id}: {problem.what}"
                found.append(AuditProblem(None, what, problem.expected, problem.found))
            if len(found) >= PROBLEM_LIMIT:
                break
        self.events += reading.events
        return found + [problem for one in said for problem in _contradictions(one, said, reading)]


def _rows(connection: sqlite3.Connection, ledger_id: str) -> Iterator[AuditedRow]:
    query = f"SELECT {', '.join(COLUMNS)} FROM foreign_event WHERE ledger_id = ? ORDER BY seq"  # noqa: S608
    yield from connection.execute(query, (ledger_id,))


def _contradictions(one: Import, said: Sequence[Import], reading: Reading) -> Iterator[AuditProblem]:
    """Yield each difference between a LedgerImported event and what the rows give."""
    seq, payload = one
    size = _size(payload)
    root = reading.roots.get(size, b"").hex() if size is not None else ""
    if payload.get("root_hash") != root:
        yield AuditProblem(seq, f"imported root at {size}", str(payload.get("root_hash")), root or "no such size")
    if one is said[-1]:
        wanted = (size, payload.get("head_hash"))
        found = (reading.events, reading.last_hash.hex())
        if wanted != found:
            yield AuditProblem(seq, "end of the imported events", str(wanted), str(found))
    try:
        verdict = reading.verdict(GivenCheckpoint(str(payload.get("note")).encode()), None)
    except (UsageError, ValueError) as error:
        yield AuditProblem(seq, "imported checkpoint", "a signed note", str(error)[:200])
        return
    if (verdict.verdict, verdict.size) != ("consistent", size):
        yield AuditProblem(
            seq, "imported checkpoint", f"consistent at {size}", f"{verdict.verdict} at {verdict.size}"
        )


def _size(payload: Mapping[str, object]) -> int | None:
    try:
        return int(str(payload.get("size")))
    except ValueError:
        return None
