"""Reads stored rows as events: page by page, in order, without gaps, each one checked."""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from forge.errors import ActorForbidden, LedgerCorrupt, UnknownName
from forge.events import EVENT_TYPES, Event, Recorded, parse_event
from forge.ledger.actors import require_allowed
from forge.ledger.chain import StoredRow
from forge.ledger.failures import storage_errors
from forge.ledger.statements import PAGE_ROWS, select_page


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice of rows."""

    after_seq: int = 0
    until_seq: int
    """The last event at the time of the call; later events aren't part of the answer."""
    stream: str | None = None
    types: tuple[str, ...] = ()
    correlation_id: str | None = None
    limit: int | None = None

    @property
    def whole(self) -> bool:
        """Return whether nothing is filtered out, so that a missing number is a missing event."""
        return self.stream is None and not self.types and self.correlation_id is None


def known_types(types: Collection[str] | None) -> tuple[str, ...]:
    """Return the event types to filter by; raise UnknownName for an unknown type or an empty choice."""
    if types is None:
        return ()
    if isinstance(types, str):
        raise UnknownName("collection of event types", types, list(EVENT_TYPES))
    for name in types or [""]:
        if name not in EVENT_TYPES:
            raise UnknownName("event type", name, list(EVENT_TYPES))
    return tuple(sorted(set(types)))


def pages(connection: sqlite3.Connection, path: Path, wanted: Selection) -> Iterator[StoredRow]:
    """Yield the rows in order; raise LedgerCorrupt where a whole reading has a gap."""
    statement = select_page(
        stream=wanted.stream is not None,
        types=len(wanted.types),
        correlation=wanted.correlation_id is not None,
    )
    given = [
        wanted.until_seq,
        *(one for one in (wanted.stream, *wanted.types, wanted.correlation_id) if one is not None),
    ]
    after = wanted.after_seq
    left = wanted.limit
    while left is None or left > 0:
        size = PAGE_ROWS if left is None else min(left, PAGE_ROWS)
        with storage_errors(path):
            found = connection.execute(statement, (after, *given, size)).fetchall()
        for row in map(StoredRow._make, found):
            if wanted.whole and row.seq != after + 1:
                raise _gap(path, after + 1, row.seq)
            after = row.seq
            yield row
        if len(found) < size:
            if wanted.whole and after < wanted.until_seq:
                raise _gap(path, after + 1, wanted.until_seq)
            return
        left = None if left is None else left - len(found)


def _gap(path: Path, expected: int, found: int) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"{path}: event {expected} is missing before event {found}: history was edited or damaged",
        hint="forge ledger verify",
    )


def recorded(row: StoredRow, path: Path) -> Recorded[Event]:
    """Return the event in a row.

    Raises LedgerCorrupt if its payload has another digest, if it names another stream, or if its actor may not write
    it. A row that was inserted past Forge may have right hashes.
    """
    payload = row.payload.encode() if isinstance(row.payload, str) else b""  # a damaged page may hold another type
    if hashlib.sha256(payload).digest() != row.payload_sha256:
        raise LedgerCorrupt(
            f"{path}: the payload of event {row.seq} ({row.type}) isn't the one that was recorded",
            hint="forge ledger verify",
        )
    try:
        event = parse_event(row.type, row.schema_version, payload)
    except LedgerCorrupt as error:
        raise LedgerCorrupt(f"{path}: event {row.seq}: {error.message}", hint=error.hint) from error
    if event.stream() != row.stream:
        raise LedgerCorrupt(
            f"{path}: event {row.seq} ({row.type}) stands in {row.stream!r}, its content says "
            f"{event.stream()!r}: history was edited or damaged",
            hint="forge ledger verify",
        )
    try:
        require_allowed(row.actor, event)
    except ActorForbidden as error:
        raise LedgerCorrupt(f"{path}: event {row.seq}: {error.message}", hint="forge ledger verify") from error
    return Recorded(
        seq=row.seq,
        event_id=row.event_id,
        stream=row.stream,
        stream_version=row.stream_version,
        recorded_at=row.recorded_at,
        actor=row.actor,
        correlation_id=row.correlation_id,
        causation_id=row.causation_id,
        event_hash=row.event_hash.hex(),
        event=event,
    )
