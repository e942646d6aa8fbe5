"""Does the work of one write transaction: finds the head, checks the batches, chains the rows, inserts them.

The caller holds the lock inside a transaction, and rolls back if anything here raises.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from forge.domain.digest import Digest
from forge.errors import ConcurrencyConflict, IdempotencyConflict, IntegrityError
from forge.ledger.batch import PreparedBatch
from forge.ledger.chain import StoredRow, sealed
from forge.ledger.statements import (
    INSERT_EVENT,
    NAMES_AT_ONCE,
    SELECT_BY_KEY,
    SELECT_HEAD,
    SELECT_NEXT,
    SELECT_STREAM_VERSION,
    SELECT_STREAM_VERSIONS,
    SELECT_USED_KEYS,
)
from forge.ledger.tree import WIDTH, grow

_FEW_EVENTS = 10
"""Number of events of one batch below which their streams are queried one by one. Chosen; one query for all streams
costs its own preparation."""


@dataclass(frozen=True, slots=True)
class Head:
    """Place and hash of the last event; 0 and the genesis hash if there is none."""

    seq: int
    event_hash: Digest


class Appended(NamedTuple):
    """The place of a batch, and the hash of its last event."""

    first_seq: int
    last_seq: int
    head_hash: Digest
    replayed: bool
    """True if the batch was recorded before, so that this call wrote nothing."""


class _Streams:
    """Versions of the streams in this transaction: read once, then counted."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._versions: dict[str, int] = {}

    def version(self, stream: str) -> int:
        """Return how many events the stream has."""
        if stream not in self._versions:
            row = self._connection.execute(SELECT_STREAM_VERSION, (stream,)).fetchone()
            self._versions[stream] = row[0]
        return self._versions[stream]

    def note(self, stream: str, version: int) -> None:
        """Store a version that another query read."""
        self._versions[stream] = version

    def read(self, batches: Sequence[PreparedBatch]) -> None:
        """Read the versions of the streams of all batches, many in each query."""
        if len(batches) == 1 and len(batches[0].events) < _FEW_EVENTS:
            return
        streams = dict.fromkeys(event.stream for batch in batches for event in batch.events)
        self._versions = dict.fromkeys(streams, 0)
        for some in _names(list(streams)):
            self._versions.update(self._connection.execute(SELECT_STREAM_VERSIONS, some))

    def advance(self, stream: str) -> int:
        """Return the stream's next version, and count it."""
        self._versions[stream] = self.version(stream) + 1
        return self._versions[stream]


def read_head(connection: sqlite3.Connection, genesis: bytes) -> tuple[int, bytes]:
    """Return the last event's seq and hash; 0 and the genesis hash if there is none."""
    row = connection.execute(SELECT_HEAD).fetchone()
    return (row[0], row[1]) if row else (0, genesis)


def write(
    connection: sqlite3.Connection,
    batches: Sequence[PreparedBatch],
    *,
    genesis: bytes,
    now: Callable[[], datetime],
    new_id: Callable[[], str],
) -> list[Appended]:
    """Insert every batch that isn't recorded yet, and the subtrees that it completes."""
    written: list[Appended] = []
    if not batches:
        return written
    streams = _Streams(connection)
    seq, last_hash, recorded_at, key_is_new = _begin(connection, batches[0], streams, genesis=genesis)
    before = seq
    used = set() if key_is_new and len(batches) == 1 else _used_keys(connection, batches)
    streams.read(batches)
    chained: list[StoredRow] = []
    for batch in batches:
        key = batch.idempotency_key
        if key in used:  # the earlier batch may be among the rows that aren't inserted yet
            connection.executemany(INSERT_EVENT, chained)
            chained = []
            earlier = _replay(connection, batch)
            if earlier is not None:
                written.append(earlier)
                continue
        elif key is not None:
            used.add(key)
        _require_expected(batch.expected, streams)
        recorded_at = max(recorded_at, _utc(now()))  # a clock that was set back doesn't turn history around
        rows = _chain(batch, seq, last_hash, streams=streams, recorded_at=recorded_at, new_id=new_id)
        chained += rows
        written.append(Appended(seq + 1, rows[-1].seq, rows[-1].event_hash.hex(), replayed=False))
        seq, last_hash = rows[-1].seq, rows[-1].event_hash
    connection.executemany(INSERT_EVENT, chained)
    if seq // WIDTH > before // WIDTH:
        grow(connection, seq)
    return written


def _begin(
    connection: sqlite3.Connection, first: PreparedBatch, streams: _Streams, *, genesis: bytes
) -> tuple[int, bytes, str, bool]:
    """Return the head, its time, and whether the first batch's key is new; note its first stream's version.

    It takes one query.
    """
    stream = first.events[0].stream
    row = connection.execute(SELECT_NEXT, (stream, _key_at(first, 0))).fetchone()
    if row is None:
        return 0, genesis, "", True
    streams.note(stream, row[3])
    return row[0], row[1], row[2], row[4] is None


def _used_keys(connection: sqlite3.Connection, batches: Sequence[PreparedBatch]) -> set[str]:
    """Return the commands' keys that are used already; one query asks for many."""
    first = {f"{key}#0": key for batch in batches if (key := batch.idempotency_key) is not None}
    used = set[str]()
    for some in _names(list(first)):
        used.update(first[found] for (found,) in connection.execute(SELECT_USED_KEYS, some))
    return used


def _names(asked: Sequence[str]) -> Iterator[list[str]]:
    """Yield NAMES_AT_ONCE names at a time; the last list is filled up, so that the statement is always the same."""
    for start in range(0, len(asked), NAMES_AT_ONCE):
        some = list(asked[start : start + NAMES_AT_ONCE])
        yield some + some[:1] * (NAMES_AT_ONCE - len(some))


def _chain(
    batch: PreparedBatch,
    seq: int,
    last_hash: bytes,
    *,
    streams: _Streams,
    recorded_at: str,
    new_id: Callable[[], str],
) -> list[StoredRow]:
    """Return the batch's rows, chained to the event `seq` with the hash `last_hash`."""
    rows: list[StoredRow] = []
    for place, event in enumerate(batch.events):
        row = sealed(
            StoredRow(
                seq=seq + 1 + place,
                event_id=new_id(),
                stream=event.stream,
                stream_version=streams.advance(event.stream),
                type=event.type,
                schema_version=event.schema_version,
                recorded_at=recorded_at,
                actor=batch.actor,
                correlation_id=batch.correlation_id,
                causation_id=batch.causation_id,
                idempotency_key=_key_at(batch, place),
                payload=event.payload,
                payload_sha256=event.payload_sha256,
                prev_hash=last_hash,
                event_hash=b"",
            )
        )
        last_hash = row.event_hash
        rows.append(row)
    return rows


def _require_expected(expected: Mapping[str, int], streams: _Streams) -> None:
    for stream, version in expected.items():
        actual = streams.version(stream)
        if actual != version:
            raise ConcurrencyConflict(stream, version, actual)


def _replay(connection: sqlite3.Connection, batch: PreparedBatch) -> Appended | None:
    """Return the place of the same command's events; raise IdempotencyConflict if its key was used for others."""
    if batch.idempotency_key is None:
        return None
    first = _row_of_key(connection, batch, 0)
    if first is None:
        return None
    rows = [first, *(_row_of_key(connection, batch, place) for place in range(1, len(batch.events) + 1))]
    stored = [row and row[1:4] for row in rows]
    given = [(event.type, event.schema_version, event.payload_sha256) for event in batch.events]
    last = rows[len(batch.events) - 1]
    if last is None or stored != [*given, None]:
        raise IdempotencyConflict(
            f"the command key {batch.idempotency_key!r} was used at event {first[0]} with other content: "
            "a command that makes a new decision needs its own key"
        )
    return Appended(first[0], last[0], last[4].hex(), replayed=True)


_KeyedRow = tuple[int, str, int, bytes, bytes]
"""seq, type, schema_version, payload_sha256, event_hash."""


def _row_of_key(connection: sqlite3.Connection, batch: PreparedBatch, place: int) -> _KeyedRow | None:
    row: _KeyedRow | None = connection.execute(SELECT_BY_KEY, (_key_at(batch, place),)).fetchone()
    return row


def _key_at(batch: PreparedBatch, place: int) -> str | None:
    return None if batch.idempotency_key is None else f"{batch.idempotency_key}#{place}"


def _utc(moment: datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.ffffffZ`; raise IntegrityError for a time without a zone."""
    if moment.tzinfo is None:
        raise IntegrityError(f"the clock gave {moment!r}: expected a time with its zone")
    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    said = orjson.dumps(in_utc, option=orjson.OPT_UTC_Z)  # isoformat takes five times as long
    return (said[1:-1] if in_utc.microsecond else said[1:-2] + b".000000Z").decode()
