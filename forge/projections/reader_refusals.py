"""Reads a whole ledger as its readers do, and reports what any of them would refuse.

The auditor derives rows again and knows no event types. This module is the other half of a verification. It parses
each payload as its event, compares it with what the writer would have written, and gives it to every fold.
"""

import re
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import RFC_4122, UUID

import orjson

from forge.domain.digest import Digest, canonical
from forge.errors import ForgeError, LedgerCorrupt
from forge.events import Event, Recorded
from forge.events.candidate import CandidateSubmitted
from forge.events.create import TaskCreated
from forge.events.environment import EnvironmentCaptured
from forge.events.kinds import KINDS
from forge.ledger.actors import require_allowed
from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.audit.report import PROBLEM_LIMIT, AuditProblem, AuditReport
from forge.ledger.batch import Batch, prepare
from forge.ledger.chain import StoredRow
from forge.ledger.reading import recorded
from forge.ledger.replay import Line
from forge.ledger.statements import COLUMNS, SELECT_ALL, SELECT_HEAD, SELECT_META
from forge.ledger.writing import Head
from forge.projections import runs
from forge.projections.altered_documents import PublishedDocuments
from forge.projections.altered_tables import altered_tables
from forge.projections.contradictions import SessionsRead, row_contradictions, run_contradictions
from forge.projections.fold import Position
from forge.projections.folds import TAKERS
from forge.projections.sqlite_file import create
from forge.projections.state import State

REGISTRY = "kernel_registry"
"""Name of the folder of published files, beside the ledger."""
_SHOWN = 300
"""Number of characters of a refusal that are shown, because a validator quotes its input."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_CACHED_EVENTS = 64
"""Number of events that are cached by place. Chosen; the evidence of a promotion is shortly before it."""
_UNREADABLE = ("application id", "format", "database", "events")
"""Names in an audit's problems that mean that rows can't be read at all."""
STOPS_READERS = ("event", "what the event stands on")
"""Names in problems of events that no reader takes. Any other event is read, though no writer wrote it so."""
_OUTSIDE_ROWS = ("blob ", "run ")
"""Beginnings of an audit's problems about what isn't in the rows."""
_FOLD_ERRORS = (ForgeError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, sqlite3.Error)
"""Exceptions of a fold that can't take an event."""


def refusals(path: Path, *, after: AuditReport, full: bool = False) -> list[AuditProblem]:
    """Return what the readers of a ledger would refuse, in the order of the rows: up to a thousand, unless `full`.

    The list is empty if the audit `after` found rows that don't follow from each other. Raises EnvironmentUnfit if
    the ledger can't be read here. `full` also compares what is published beside the ledger with the folds.
    """
    found: list[AuditProblem] = []
    if not are_sound(after):
        return found
    published = PublishedDocuments(path.parent / REGISTRY, after.problems) if full else None
    try:
        with closing(connect_to_read(path, timeout_s=30)) as connection, closing(create(Path(":memory:"))) as tables:
            connection.execute("BEGIN")
            rows, state = _Rows(connection, path), State(tables)
            for problem in _refusals(rows, state, tables, published):
                found.append(problem)
                if len(found) >= PROBLEM_LIMIT and not full:
                    break
            found += published.unsigned(after.keys) if published else []
    except (sqlite3.Error, UnicodeDecodeError) as error:
        found.append(AuditProblem(None, "database", "rows that readers can read", str(error)[:_SHOWN]))
    return found


def refusals_of(connection: sqlite3.Connection, path: Path) -> Iterator[AuditProblem]:
    """Yield what readers would refuse of the rows behind a connection; messages name `path`."""
    with closing(create(Path(":memory:"))) as tables:
        yield from _refusals(_Rows(connection, path), State(tables), tables, None)


def are_sound(report: AuditReport) -> bool:
    """Return whether the audit found no problem in the rows. Only such rows are then read as events."""
    return report.root is not None and all(
        problem.what.startswith(_OUTSIDE_ROWS) or (problem.seq is None and problem.what not in _UNREADABLE)
        for problem in report.problems
    )


def _refusals(
    rows: "_Rows", state: State, tables: sqlite3.Connection, published: PublishedDocuments | None
) -> Iterator[AuditProblem]:
    all_runs, whole, refused = runs.EMPTY.copied(), True, False
    all_sessions = SessionsRead()
    before: StoredRow | None = None
    for row in rows.stored():
        for what, complaint in rows.contradictions(row, before):
            yield _problem(row.seq, what, complaint)
        before = row
        try:
            event = rows.recorded(row)
            content = canonical(event.event)
        except (LedgerCorrupt, TypeError, ValueError) as error:  # the last two: a whole number beyond 64 bits
            whole = False  # without this event the folds would refuse later ones that are sound
            yield _problem(row.seq, STOPS_READERS[0], _said(error))
            continue
        for what, complaint in _unlike_the_writers(row, event.event):
            yield _problem(row.seq, what, complaint)
        if whole:
            for complaint in run_contradictions(event, all_runs, state):
                yield _problem(row.seq, "what its run says", complaint)
            for complaint in _fold(event, content, row, rows, state, all_runs, all_sessions):
                refused = True
                yield _problem(row.seq, STOPS_READERS[1], complaint)
            if published is not None and published.is_due(row.seq) and state.changed is not None:
                state.flush()
                yield from published.problems(tables, rows.position(row), rows.position(state.changed))
            if published is not None and published.tables_at == row.seq and not refused:
                state.flush()
                yield from altered_tables(published.folder, tables, rows.position(row))


def _problem(seq: int, what: str, complaint: str) -> AuditProblem:
    return AuditProblem(seq, what, "what readers accept", " ".join(complaint.split())[:_SHOWN])


def _fold(
    event: Recorded[Event],
    content: bytes,
    row: StoredRow,
    rows: "_Rows",
    state: State,
    all_runs: runs.RunsState,
    all_sessions: SessionsRead,
) -> Iterator[str]:
    """Give an event, whose canonical payload is `content`, to every fold; yield what those that refuse it say."""
    line = Line(row.seq, row.type, row.recorded_at, row.actor, row.event_hash, orjson.loads(content))
    for take in TAKERS.get(row.type, ()):
        try:
            take(state, line, rows)
        except _FOLD_ERRORS as error:
            yield _said(error)
    state.settle()
    try:
        runs.take(all_runs, event)
        all_sessions.take(event, all_runs)
    except _FOLD_ERRORS as error:
        yield _said(error)


def _said(error: Exception) -> str:
    return error.message if isinstance(error, ForgeError) else f"{type(error).__name__}: {error}"


def _unlike_the_writers(row: StoredRow, event: Event) -> Iterator[tuple[str, str]]:
    """Yield how a readable row differs from any that the writer writes: the column, and why."""
    try:
        if row.schema_version == KINDS[row.type].version:
            batch = Batch(
                events=[event],
                actor=row.actor,
                correlation_id=row.correlation_id,
                causation_id=row.causation_id,
                idempotency_key=row.idempotency_key,
            )
            (written,) = prepare(batch, opening=row.seq == 1).events
            expected = written.payload
        else:
            require_allowed(row.actor, event)
            expected = _as_written_then(row.payload, event)
        if row.payload != expected:
            yield "payload", f"{_difference(row.payload, expected)}: the writer spells it otherwise"
    except ForgeError as error:
        yield "event", error.message
    if not _is_moment(row.recorded_at):
        yield "recorded_at", f"{row.recorded_at!r} is no moment in UTC with microseconds"
    if not _is_event_id(row.event_id):
        yield "event_id", f"{row.event_id!r} is no UUIDv7"
    for name, said, derived in _derived_names(event):
        if said != derived:
            yield name, f"{said}, but its content gives {derived}"


def _as_written_then(payload: str, event: Event) -> str:
    """Return the canonical text of an older payload: its own fields, each in its current form."""
    return canonical(_only(orjson.loads(payload), event.model_dump(mode="json"))).decode()


# Any: a JSON document
def _only(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: _only(value, new[name]) for name, value in old.items() if name in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_only(one, other) for one, other in zip(old, new, strict=True)]
    return new


def _difference(found: str, expected: str) -> str:
    """Return the place where two texts begin to differ."""
    place = next((at for at, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other), 0)
    return f"{found[max(0, place - 30) : place + 30]!r}, expected {expected[max(0, place - 30) : place + 30]!r}"


def _is_moment(text: str) -> bool:
    try:
        return _MOMENT.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_event_id(text: str) -> bool:
    try:
        found = UUID(text)
    except ValueError:
        return False
    return (str(found), found.version, found.variant) == (text, 7, RFC_4122)


def _derived_names(event: Event) -> Iterator[tuple[str, str, str]]:
    """Yield field, value and expected value for each name that is the digest of other fields."""
    match event:
        case EnvironmentCaptured():
            for name in ("env_sha256", "perf_key", "abi_key"):
                yield name, getattr(event, name), getattr(event.environment, name)
        case CandidateSubmitted():
            yield "candidate", event.candidate, event.files.sha256
        case TaskCreated():
            yield "task_id", event.task_id, event.task.task_id
        case _:
            return


class _Rows:
    """A ledger as the folds see it, read through a connection of its own."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._name = Path(path.name)
        """Path that messages name."""
        self._asked = OrderedDict[int, Recorded[Event]]()
        meta: tuple[int, str] = connection.execute(SELECT_META).fetchone()[:2]
        self.ledger_id = meta[1]
        seq, event_hash = connection.execute(SELECT_HEAD).fetchone() or (0, b"")
        self.head = Head(seq, event_hash.hex())

    def stored(self) -> Iterator[StoredRow]:
        """Yield every row in order."""
        return map(StoredRow._make, self._connection.execute(SELECT_ALL))

    def position(self, row: StoredRow | Line) -> Position:
        """Return the position of a row."""
        return Position(self.ledger_id, row.seq, row.event_hash.hex())

    def contradictions(self, row: StoredRow, before: StoredRow | None) -> Iterator[tuple[str, str]]:
        """Yield the column and what is wrong, for each value of a row that contradicts the rows before it."""
        return row_contradictions(row, before, self._connection)

    def recorded(self, row: StoredRow) -> Recorded[Event]:
        """Return the event in a row; raise LedgerCorrupt."""
        event = self._asked[row.seq] = recorded(row, self._name)
        if len(self._asked) > _CACHED_EVENTS:
            self._asked.popitem(last=False)
        return event

    def hash_at(self, seq: int) -> Digest | None:
        """Return the hash of the event at a place; None beyond the head."""
        row = self._row(seq)
        return None if row is None else row.event_hash.hex()

    def lines(self, after_seq: int) -> Iterator[Line]:
        """Refuse: no fold asks for later events, because it is given them."""
        raise NotImplementedError(f"events after {after_seq}: a fold takes one at a time")

    def event_at(self, seq: int) -> Recorded[Event] | None:
        """Return the event at a place; None if there is none."""
        if seq in self._asked:
            return self._asked[seq]
        row = self._row(seq)
        return None if row is None else self.recorded(row)

    def _row(self, seq: int) -> StoredRow | None:
        found = self._connection.execute(f"SELECT {COLUMNS} FROM event WHERE seq = ?", (seq,)).fetchone()  # noqa: S608
        return None if found is None else StoredRow._make(found)
