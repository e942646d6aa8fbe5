"""Reads stored rows as plain documents, for answers that need a few events and no models, which take long to load.

Reading checks a row's own hash, its payload's digest, its stream and its actor, as it does for an event. The fields
of a payload were validated when it was recorded. A type is read here only if `KINDS` has it. A field that events
leave out where it is unset isn't in a document either.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from forge.errors import ActorForbidden, LedgerCorrupt
from forge.events.kinds import KINDS
from forge.events.upcast import upcast
from forge.ledger.actor_rights import group_of, require_group
from forge.ledger.chain import StoredRow, event_hash
from forge.ledger.statements import COLUMNS

AT = f"SELECT {COLUMNS} FROM event WHERE seq = ?"  # noqa: S608 (names of our own columns)
Document = dict[str, Any]  # Any: a JSON document, validated when it was recorded


class PlainEvent(NamedTuple):
    """An event as a document, with the columns that answers show."""

    seq: int
    type: str
    recorded_at: str
    actor: str
    event_id: str
    causation_id: str | None
    event_hash: str
    event: Document


def plain_event(connection: sqlite3.Connection, path: Path, seq: int) -> PlainEvent:
    """Return the event at a place; raise LedgerCorrupt if it is unsound, KeyError if its type isn't read here."""
    row = connection.execute(AT, (seq,)).fetchone()
    if row is None:
        raise _unsound(path, seq, "is missing")
    return _plain(StoredRow._make(row), path)


def plain_events(connection: sqlite3.Connection, path: Path, types: Sequence[str]) -> list[PlainEvent]:
    """Return all events of some types in order; raise LedgerCorrupt for an unsound one, KeyError as `plain_event`."""
    places = ", ".join("?" * len(types))
    query = f"SELECT {COLUMNS} FROM event WHERE type IN ({places}) ORDER BY seq"  # noqa: S608 (our own names)
    return [_plain(StoredRow._make(row), path) for row in connection.execute(query, tuple(types))]


def _plain(row: StoredRow, path: Path) -> PlainEvent:
    """Return a row's event, checked."""
    kind = KINDS[row.type]
    if not 1 <= row.schema_version <= kind.version:
        raise KeyError(f"{row.type} v{row.schema_version}")
    content = row.payload.encode()
    if hashlib.sha256(content).digest() != row.payload_sha256 or event_hash(row) != row.event_hash:
        raise _unsound(path, row.seq, "isn't the one that was recorded")
    event = orjson.loads(content)
    if row.schema_version < kind.version:
        event = dict(sorted(upcast(row.type, row.schema_version, event, to_version=kind.version).items()))
    if kind.stream.format_map(event) != row.stream:
        raise _unsound(path, row.seq, f"stands in {row.stream!r}, and its content names another stream")
    try:
        require_group(row.actor, row.type, group_of(row.type, kind.group, event.get("stage")))
    except ActorForbidden as error:
        raise _unsound(path, row.seq, error.message) from error
    named = (row.event_id, row.causation_id, row.event_hash.hex())
    return PlainEvent(row.seq, row.type, row.recorded_at, row.actor, *named, event)


def _unsound(path: Path, seq: int, said: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"{path}: event {seq} {said}", hint="forge ledger verify")
