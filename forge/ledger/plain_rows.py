"""Reads stored rows as plain documents, for answers that need a few events and no models, which take long to load.

Checked are a row's own hash, its payload's digest, its stream and its actor, as where a row is read as an event.
The fields of a payload were validated when it was recorded. A type is read here only if `KINDS` has it.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from forge.errors import ActorForbidden, LedgerCorrupt
from forge.ledger.actor_classes import require_group
from forge.ledger.chain import StoredRow, event_hash
from forge.ledger.statements import COLUMNS

if TYPE_CHECKING:
    from forge.events.fact import Group


class Kind(NamedTuple):
    """What is checked of a type's rows. A test holds it against the event's class."""

    group: "Group"
    stream: str
    """Name of the stream, with the payload's field in braces."""
    versions: tuple[int, ...] = (1,)
    """Schema versions whose payloads need no step to be read as current ones."""


KINDS: dict[str, Kind] = {
    "BaselineRecorded": Kind("observed", "task:{task_id}"),
    "BenchmarkRecorded": Kind("observed", "candidate:{candidate}", (1, 2)),
    "CandidateVerified": Kind("observed", "candidate:{candidate}", (2, 3)),
    "CheckpointPublished": Kind("signed", "ledger:{ledger_id}"),
    "DeviceCalibrated": Kind("observed", "env:{env_sha256}"),
    "EnvironmentCaptured": Kind("observed", "env:{env_sha256}"),
    "HumanDecided": Kind("human", "{subject_stream}"),
    "KernelDeprecated": Kind("decided", "kernel:{family}"),
    "KernelDoubted": Kind("handed_in", "doubt:{kernel_id}"),
    "KernelPromoted": Kind("decided", "kernel:{family}"),
    "KernelRevoked": Kind("decided", "kernel:{family}"),
    "LessonAccepted": Kind("human", "lesson:{lesson_id}"),
    "LessonProposed": Kind("handed_in", "lesson:{lesson_id}"),
    "PlanAccepted": Kind("handed_in", "task:{task_id}", (2, 3)),
    "ReplicationRecorded": Kind("observed", "kernel:{family}"),
    "TaskCreated": Kind("handed_in", "task:{task_id}", (2,)),
    "TokenGranted": Kind("human", "token:{token_sha256}"),
    "TokenRevoked": Kind("human", "token:{token_sha256}"),
}
"""Event type -> what is checked of its rows."""
AT = f"SELECT {COLUMNS} FROM event WHERE seq = ?"  # noqa: S608 (names of our own columns)


class PlainEvent(NamedTuple):
    """An event as a document, with the columns that answers show."""

    seq: int
    type: str
    recorded_at: str
    actor: str
    event_hash: str
    # Any: a JSON document, validated when it was recorded
    event: dict[str, Any]


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
    if row.schema_version not in kind.versions:
        raise KeyError(f"{row.type} v{row.schema_version}")
    content = row.payload.encode()
    if hashlib.sha256(content).digest() != row.payload_sha256 or event_hash(row) != row.event_hash:
        raise _unsound(path, row.seq, "isn't the one that was recorded")
    event = orjson.loads(content)
    if kind.stream.format_map(event) != row.stream:
        raise _unsound(path, row.seq, f"stands in {row.stream!r}, and its content names another stream")
    try:
        require_group(row.actor, row.type, kind.group)
    except ActorForbidden as error:
        raise _unsound(path, row.seq, error.message) from error
    return PlainEvent(row.seq, row.type, row.recorded_at, row.actor, row.event_hash.hex(), event)


def _unsound(path: Path, seq: int, said: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"{path}: event {seq} {said}", hint="forge ledger verify")
