"""Reads stored rows as plain documents, for answers that need a few events and no models, which take long to load.

Checked are a row's own hash, its payload's digest, its stream and its actor, as where a row is read as an event.
The fields of a payload were validated when it was recorded. A type is read here only if `KINDS` has it. A field that
events leave out where it is unset isn't in a document either.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from forge.errors import ActorForbidden, LedgerCorrupt
from forge.events.upcast import upcast
from forge.ledger.actor_classes import group_of, require_group
from forge.ledger.chain import StoredRow, event_hash
from forge.ledger.statements import COLUMNS

if TYPE_CHECKING:
    from forge.events.fact import Group


class Kind(NamedTuple):
    """What is checked of a type's rows. A test holds it against the event's class."""

    group: "Group"
    stream: str
    """Name of the stream, with the payload's field in braces."""
    version: int = 1
    """Schema version that answers read. Older payloads are brought up to it."""


KINDS: dict[str, Kind] = {
    "BaselineRecorded": Kind("observed", "task:{task_id}"),
    "BenchmarkErrored": Kind("observed", "candidate:{candidate}"),
    "BenchmarkFailed": Kind("observed", "candidate:{candidate}", 2),
    "BenchmarkInvalidated": Kind("observed", "candidate:{candidate}"),
    "BenchmarkRecorded": Kind("observed", "candidate:{candidate}", 2),
    "CandidateDuplicated": Kind("handed_in", "candidate:{candidate}"),
    "CandidateRejected": Kind("observed", "candidate:{candidate}", 3),
    "CandidateSubmitted": Kind("handed_in", "candidate:{candidate}", 2),
    "CandidateVerified": Kind("observed", "candidate:{candidate}", 3),
    "CheckpointPublished": Kind("signed", "ledger:{ledger_id}"),
    "ClaimAssessed": Kind("observed", "candidate:{candidate}", 2),
    "ClaimRecorded": Kind("handed_in", "candidate:{candidate}"),
    "DeviceCalibrated": Kind("observed", "env:{env_sha256}"),
    "EnvironmentCaptured": Kind("observed", "env:{env_sha256}"),
    "ExperimentClosed": Kind("observed", "candidate:{candidate}"),
    "HumanDecided": Kind("human", "{subject_stream}"),
    "KernelDeprecated": Kind("decided", "kernel:{family}"),
    "KernelDoubted": Kind("handed_in", "doubt:{kernel_id}"),
    "KernelPromoted": Kind("decided", "kernel:{family}"),
    "KernelRevoked": Kind("decided", "kernel:{family}"),
    "LedgerImported": Kind("moved", "ledger:{ledger_id}"),
    "LedgerKeyAdopted": Kind("human", "ledger:{ledger_id}"),
    "LedgerKeyRotated": Kind("signed", "ledger:{ledger_id}"),
    "LedgerOpened": Kind("opening", "ledger:{ledger_id}"),
    "LessonAccepted": Kind("human", "lesson:{lesson_id}"),
    "LessonProposed": Kind("handed_in", "lesson:{lesson_id}"),
    "PlanAccepted": Kind("handed_in", "task:{task_id}", 3),
    "ProfileCaptured": Kind("observed", "candidate:{candidate}"),
    "PromotionDenied": Kind("decided", "kernel:{family}"),
    "PromptRendered": Kind("handed_in", "task:{task_id}", 2),
    "ReplicationRecorded": Kind("observed", "kernel:{family}"),
    "RunAborted": Kind("run", "run:{run_id}"),
    "RunSealed": Kind("run", "run:{run_id}"),
    "RunStarted": Kind("run", "run:{run_id}"),
    "ShapeTimed": Kind("observed", "candidate:{candidate}"),
    "TaskCreated": Kind("handed_in", "task:{task_id}", 2),
    "TokenGranted": Kind("human", "token:{token_sha256}"),
    "TokenRevoked": Kind("human", "token:{token_sha256}"),
    "VerificationErrored": Kind("observed", "candidate:{candidate}"),
}
"""Event type -> what is checked of its rows."""
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
