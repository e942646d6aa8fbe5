"""Reads events for projections: narrow rows in order, with the payload decoded only for the types that are needed.

A payload was validated when it was recorded. Here it is decoded, and only its digest and its actor are checked. A
fold over a long history must not cost more than reading it.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from forge.errors import ActorForbidden, LedgerCorrupt
from forge.events.kinds import KINDS
from forge.events.upcast import upcast
from forge.ledger.actors import require_allowed_document
from forge.ledger.failures import storage_errors
from forge.ledger.statements import select_lines

PAGE_ROWS = 250
"""Number of rows fetched at a time; no transaction stays open between pages. Chosen: half of a reader's, since a fold
holds each event with what it makes of it."""


class Line(NamedTuple):
    """One event, with the columns that a fold needs."""

    seq: int
    type: str
    recorded_at: str
    actor: str
    event_hash: bytes
    # Any: a JSON document, validated when it was recorded
    event: dict[str, Any]
    """The payload in its current schema version; empty for types that weren't asked for."""


_Row = tuple[int, str, int, str, str, bytes, str | None, bytes | None]


def replay(
    connection: sqlite3.Connection, path: Path, *, after_seq: int, until_seq: int, types: Collection[str]
) -> Iterator[Line]:
    """Yield every event in `after_seq < seq <= until_seq`; raise LedgerCorrupt where one is missing or unsound."""
    wanted = sorted(types)
    statement = select_lines(len(wanted))
    while after_seq < until_seq:
        with storage_errors(path):
            values = (*wanted, *wanted, after_seq, until_seq, PAGE_ROWS)
            found: list[_Row] = connection.execute(statement, values).fetchall()
        for row in found:
            after_seq += 1
            if row[0] != after_seq:
                raise _gap(path, after_seq)
            yield _line(row, path)
        if not found:
            raise _gap(path, after_seq + 1)


def _gap(path: Path, seq: int) -> LedgerCorrupt:
    return LedgerCorrupt(f"{path}: event {seq} is missing: history was edited or damaged", hint="forge ledger verify")


def _line(row: _Row, path: Path) -> Line:
    seq, kind, version, recorded_at, actor, event_hash, payload, digest = row
    current = KINDS[kind].version if kind in KINDS else 0
    if not (isinstance(version, int) and 1 <= version <= current):
        raise LedgerCorrupt(
            f"{path}: event {seq} is {kind!r} v{version}: this Forge reads v1 to v{current}; upgrade",
            hint="forge ledger verify",
        )
    if payload is None:
        return Line(seq, kind, recorded_at, actor, event_hash, {})
    content = payload.encode() if isinstance(payload, str) else b""  # a damaged page may hold another type
    if hashlib.sha256(content).digest() != digest:
        raise LedgerCorrupt(
            f"{path}: the payload of event {seq} ({kind}) isn't the one that was recorded", hint="forge ledger verify"
        )
    try:
        event = orjson.loads(content)
        if version < current:
            event = upcast(kind, version, event, to_version=current)
    except (orjson.JSONDecodeError, KeyError) as error:
        raise LedgerCorrupt(
            f"{path}: payload of event {seq} ({kind}) can't be read ({error}): restore a backup"
        ) from error
    try:
        require_allowed_document(actor, kind, event)
    except ActorForbidden as error:
        raise LedgerCorrupt(f"{path}: event {seq}: {error.message}", hint="forge ledger verify") from error
    return Line(seq, kind, recorded_at, actor, event_hash, event)
