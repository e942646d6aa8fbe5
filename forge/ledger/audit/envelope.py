"""Checks one row: which values its columns may hold, and which hash its envelope gives.

The rules for a row are written here a second time, independent of the writer. A quick implementation checks rows of
plain text, which are nearly all. A second one, with the standard library's JSON, checks every other row.
"""

import hashlib
import json
from binascii import hexlify
from collections.abc import Iterator

from forge.ledger.audit.report import AuditProblem

COLUMNS = (
    "seq",
    "event_id",
    "stream",
    "stream_version",
    "type",
    "schema_version",
    "recorded_at",
    "actor",
    "correlation_id",
    "causation_id",
    "idempotency_key",
    "payload",
    "payload_sha256",
    "prev_hash",
    "event_hash",
)
"""Columns of `event` in their order."""
AuditedRow = tuple[object, ...]
"""The values of COLUMNS in their order; text is bytes."""
_ENVELOPE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_DIGESTS = frozenset({"payload_sha256", "prev_hash", "event_hash"})
_NUMBERS = ("stream_version", "schema_version")
"""Columns that hold whole numbers, beside `seq`."""
_TEXTS = frozenset(COLUMNS) - _DIGESTS - {"seq", *_NUMBERS, "payload"}
"""Columns that hold text, beside the payload."""
_STORED_AS_BYTES = tuple(sorted(_TEXTS | _DIGESTS | {"payload"}))
"""Columns that the auditor reads as bytes: text, digests and the payload."""
_PLAIN_TEXT = bytes(code if 0x20 <= code < 0x80 and code not in b'"\\' else 0x20 for code in range(256))
"""Translation table that changes nothing in plain text: ASCII without the characters that JSON escapes (RFC 8259,
section 7)."""
_PLAIN = (
    b'\x00{"actor":"%b","causation_id":%b,"correlation_id":"%b","event_id":"%b","idempotency_key":%b,'
    b'"payload_sha256":"%b","prev_hash":"%b","recorded_at":"%b","schema_version":%d,"seq":%d,"stream":"%b",'
    b'"stream_version":%d,"type":"%b"}'
)
"""Envelope of a row of plain text as a bytes template, in canonical order of the names."""


def quick_hash(row: AuditedRow) -> bytes | None:
    """Return the hash of a row of plain text; None if the row needs the slower check."""
    seq, event_id, stream, version, kind, schema, at, actor, correlation, cause, key, _, payload, prev, _ = row
    if not type(seq) is type(version) is type(schema) is int:
        return None
    try:
        # a value that isn't bytes raises, so the four ignored types are safe
        joined = b"".join((event_id, stream, kind, at, actor, correlation, cause or b"", key or b""))  # type: ignore[arg-type]
        if joined.translate(_PLAIN_TEXT) != joined:
            return None
        shown_cause = b"null" if cause is None else b'"%b"' % cause  # type: ignore[str-format]
        shown_key = b"null" if key is None else b'"%b"' % key  # type: ignore[str-format]
        digests = hexlify(payload), hexlify(prev)  # type: ignore[arg-type]
    except TypeError:
        return None
    columns = (actor, shown_cause, correlation, event_id, shown_key, *digests, at, schema, seq, stream, version, kind)
    return hashlib.sha256(_PLAIN % columns).digest()


def malformed(seq: int, row: dict[str, object]) -> Iterator[AuditProblem]:
    """Yield a problem for each value that Forge's writer can't have stored."""
    for name in _NUMBERS:
        if not isinstance(row[name], int):
            yield AuditProblem(seq, name, "a whole number", repr(row[name])[:200])
    for name in _STORED_AS_BYTES:
        value = row[name]
        if value is None and name in ("causation_id", "idempotency_key"):
            continue
        if not isinstance(value, bytes) or (name in _DIGESTS and len(value) != hashlib.sha256().digest_size):
            yield AuditProblem(seq, name, "32 bytes" if name in _DIGESTS else "text", repr(value)[:200])
        elif name in _TEXTS and _undecodable(value):
            yield AuditProblem(seq, name, "UTF-8", repr(value)[:200])


def _undecodable(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def derived_hash(row: dict[str, object]) -> str:
    """Return the SHA-256 of 0x00 and the canonical JSON of every column but the payload and the hash itself."""
    columns = {
        name: hex_of(value) if name in _DIGESTS else text_of(value) if name in _TEXTS else value
        for name, value in row.items()
        if name not in ("payload", "event_hash")
    }
    return hashlib.sha256(b"\x00" + _ENVELOPE.encode(columns).encode()).hexdigest()


def hex_of(value: object) -> str:
    """Return a digest in hex; any other value as Python shows it."""
    return value.hex() if isinstance(value, bytes) else repr(value)


def text_of(value: object) -> str | None:
    """Return a column's text; None if the value isn't text."""
    return value.decode() if isinstance(value, bytes) else None
