r"""Chains rows: each row's hash covers its envelope, and the envelope contains the hash of the row before.

`event_hash = SHA256(0x00 || envelope)`. The envelope is the canonical JSON of every column but `payload` and
`event_hash`, under the columns' names, with digests in lower-case hex. The 0x00 makes the same hash the leaf of a
Merkle tree (RFC 6962, section 2.1). The first row follows `SHA256("forge.ledger.v1\n" || ledger_id)`, so that the
chains of two ledgers can't be joined.
"""

import hashlib
from typing import NamedTuple

import orjson

FORMAT = "forge.ledger.v1"
"""Name of the ledger's format; the genesis hash depends on it."""
LEAF = b"\x00"
"""Byte before the content of a Merkle leaf (RFC 6962, section 2.1)."""


class StoredRow(NamedTuple):
    """One row of `event`, in the order of its columns."""

    seq: int
    event_id: str
    stream: str
    stream_version: int
    type: str
    schema_version: int
    recorded_at: str
    actor: str
    correlation_id: str
    causation_id: str | None
    idempotency_key: str | None
    payload: str
    payload_sha256: bytes
    prev_hash: bytes
    event_hash: bytes


def genesis_hash(ledger_id: str) -> bytes:
    """Return the hash that the first row of a ledger follows."""
    return hashlib.sha256(f"{FORMAT}\n{ledger_id}".encode()).digest()


def envelope(row: StoredRow) -> bytes:
    """Return the bytes that a row's hash covers; they contain the payload's digest, not the payload."""
    return orjson.dumps(
        {  # in the order of the names, which makes it canonical
            "actor": row.actor,
            "causation_id": row.causation_id,
            "correlation_id": row.correlation_id,
            "event_id": row.event_id,
            "idempotency_key": row.idempotency_key,
            "payload_sha256": row.payload_sha256.hex(),
            "prev_hash": row.prev_hash.hex(),
            "recorded_at": row.recorded_at,
            "schema_version": row.schema_version,
            "seq": row.seq,
            "stream": row.stream,
            "stream_version": row.stream_version,
            "type": row.type,
        }
    )


def event_hash(row: StoredRow) -> bytes:
    """Return the hash of a row, which the next row follows; the row's own `event_hash` isn't read."""
    return hashlib.sha256(LEAF + envelope(row)).digest()


def sealed(row: StoredRow) -> StoredRow:
    """Return the row with its hash."""
    return StoredRow._make((*row[:-1], event_hash(row)))
