"""Checks a whole bundle from another machine, and writes nothing.

The auditor reads the rows, not the code that writes ours. Rows that were imported before are read again, so that a
bundle that continues them is compared with all of them.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import orjson

from forge.domain.digest import Digest
from forge.errors import BundleRefused, LedgerForked, UsageError
from forge.ledger.audit.referenced_blobs import required_blobs
from forge.ledger.audit.rows import Reading
from forge.ledger.audit.signatures import GivenCheckpoint, sizes_in
from forge.ledger.audit.tree import StoredNodes
from forge.ledger.blobs import BlobStore
from forge.ledger.chain import StoredRow, event_hash
from forge.ledger.statements import (
    PAYLOAD_LIMIT_BYTES,
    SELECT_ALL,
    SELECT_FOREIGN,
    SELECT_FOREIGN_HEAD,
    SELECT_FOREIGN_PLACE,
    SELECT_PLACE,
)
from forge.ledger.store import Ledger
from forge.ledger.transfer.bundle import BundleHeader, UntrustedBundle
from forge.ledger.transfer.named_blobs import ProvidedBlobs
from forge.proof.note import VerifierKey

Progress = Callable[[str], None]
Examine = Callable[[str, Iterator[StoredRow]], str | None]
"""Function that reads a ledger's id and rows as events; it returns what readers would refuse, None if nothing."""
PROGRESS_EVENTS = 20_000
"""Number of events between two messages of progress. Chosen; a long check prints some lines a minute."""
NOTE_LIMIT_BYTES = PAYLOAD_LIMIT_BYTES // 4
"""Longest checkpoint in bytes. JSON may double its length, and the event that stores it has other fields too."""
_TYPES_WITH_SIZES = (b'"CheckpointPublished"', b'"LedgerRestored"')
"""JSON of the types of events that state a root at a size."""


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """A bundle that passed every check, and how much of its ledger was here before."""

    header: BundleHeader
    held: int
    root: bytes
    head_hash: bytes
    bundle_sha256: Digest

    @property
    def new(self) -> int:
        """Return how many of its events are new here."""
        return max(0, self.header.size - self.held)


class _KnownRows:
    """The bundle's rows that are here already: rows imported before, or this ledger's own."""

    def __init__(self, ledger: Ledger, connection: sqlite3.Connection, ledger_id: str) -> None:
        self.is_ours = ledger_id == ledger.ledger_id
        self._connection = connection
        self._ledger_id = ledger_id
        head = connection.execute(SELECT_FOREIGN_HEAD, (ledger_id,)).fetchone()
        self.size = ledger.head.seq if self.is_ours else head[0] if head else 0

    def hash_at(self, seq: int) -> bytes | None:
        """Return the hash of an event that is here; None if it isn't."""
        if self.is_ours:
            row = self._connection.execute(SELECT_PLACE, (seq,)).fetchone()
        else:
            row = self._connection.execute(SELECT_FOREIGN_PLACE, (self._ledger_id, seq)).fetchone()
        return row[0] if row else None

    def rows(self, until: int) -> Iterator[StoredRow]:
        """Yield the rows that are here, up to a place."""
        rows = self._connection.execute(*((SELECT_ALL, ()) if self.is_ours else (SELECT_FOREIGN, (self._ledger_id,))))
        for row in rows:
            if row[0] > until:
                return
            yield StoredRow._make(row)


def check(
    bundle: UntrustedBundle,
    ledger: Ledger,
    blobs: BlobStore,
    *,
    trusted: VerifierKey | None,
    before: str | None,
    examine: Examine,
    progress: Progress,
) -> CheckedBundle:
    """Read all of a bundle and write nothing; `before` is the verifier key that was accepted the last time.

    Raises BundleRefused if it is damaged or contradicts itself, and UsageError if it holds nothing to import. Raises
    LedgerForked if it contradicts the rows that are here.
    """
    with ledger.snapshot() as connection:
        here = _KnownRows(ledger, connection, bundle.header.ledger_id)
        _require_no_gap(bundle, here)
        _require_short_note(bundle)
        provided = ProvidedBlobs()
        reading, required, vouched = _read(bundle, here, provided, progress)
        _require_signed(bundle, reading, vouched, trusted=trusted, before=before)
        _read_blobs(bundle, provided, progress)
        digest = bundle.finish()
        if here.is_ours:
            raise UsageError(
                f"{str(bundle.path)!r} has {bundle.header.size} events of this very ledger, and {here.size} are "
                "here; there is nothing to import; to go on from a copy, restore a backup",
                hint="forge ledger restore --help",
            )
        for place, name in required.items():
            if place.hex() not in provided.digests and not blobs.has(place.hex()):
                raise bundle.refused(f"{name} names blob {place.hex()}, which isn't in it")
        _require_readable(bundle, here, examine, progress)
    return CheckedBundle(bundle.header, here.size, reading.root, reading.last_hash, digest)


def _require_no_gap(bundle: UntrustedBundle, here: _KnownRows) -> None:
    first = bundle.header.first_seq
    if first > here.size + 1:
        raise UsageError(
            f"{str(bundle.path)!r} begins at event {first}, and of that ledger {here.size} are here: import a bundle "
            f"that begins at {here.size + 1} or before (export with --since {here.size})",
            hint="forge ledger imported",
        )


def _require_short_note(bundle: UntrustedBundle) -> None:
    """Refuse a checkpoint whose signatures would make the event that stores it too long."""
    size_bytes = len(bundle.header.note.encode())
    if size_bytes > NOTE_LIMIT_BYTES:
        raise bundle.refused(f"its checkpoint has {size_bytes} bytes, expected at most {NOTE_LIMIT_BYTES}")


def _read(
    bundle: UntrustedBundle, here: _KnownRows, provided: ProvidedBlobs, progress: Progress
) -> tuple[Reading, dict[bytes, str], int]:
    """Derive the ledger from its rows; return the reading, the blobs it needs, and where the vouched keys begin."""
    header, reading = bundle.header, Reading(None)
    reading.start(header.ledger_id, header.origin, _sizes(bundle, here), StoredNodes(None))
    required: dict[bytes, str] = {}
    vouched = 0
    for row in here.rows(header.first_seq - 1):
        vouched = _audit_row(bundle, reading, row, vouched)
    bundle.rewind()
    for row in bundle.rows():
        _require_same(bundle, here, row)
        vouched = _audit_row(bundle, reading, row, vouched)
        provided.name_in(row.payload)
        for field, digest in required_blobs(row.type, row.schema_version, _payload(row)):
            required[_digest(bundle, digest, row)] = f"event {row.seq} ({field})"
        if row.seq % PROGRESS_EVENTS == 0:
            progress(f"checked {row.seq} of {header.size} events")
    return reading, required, vouched


def _audit_row(bundle: UntrustedBundle, reading: Reading, row: StoredRow, vouched: int) -> int:
    """Audit one row; return the place of the first key from which each key vouches for the next."""
    before = len(reading.keys)
    problems = reading.problems(tuple(map(_auditor_form, row)))
    if problems:
        first = problems[0]
        raise bundle.refused(
            f"event {row.seq}: {first.what}: expected {first.expected[:200]}, found {first.found[:200]}"
        )
    return before if row.type == "LedgerKeyAdopted" else vouched


def _require_same(bundle: UntrustedBundle, here: _KnownRows, row: StoredRow) -> None:
    """Refuse a row whose hash isn't right, or that differs from the one that is here."""
    if row.event_hash != event_hash(row):
        raise bundle.refused(f"event {row.seq}: event_hash isn't the hash of its content")
    known = here.hash_at(row.seq) if row.seq <= here.size else None
    earlier = here.hash_at(row.seq - 1) if row.seq == bundle.header.first_seq > 1 else None
    if known not in (None, row.event_hash):
        raise _forked(bundle, f"event {row.seq} is {row.event_hash.hex()} there", str(known and known.hex()))
    if earlier not in (None, row.prev_hash):
        raise _forked(
            bundle,
            f"event {row.seq - 1} or one before it is {row.prev_hash.hex()} there",
            str(earlier and earlier.hex()),
        )


def _require_signed(
    bundle: UntrustedBundle, reading: Reading, vouched: int, *, trusted: VerifierKey | None, before: str | None
) -> None:
    """Refuse unless the key in force signed the end, and the trusted key leads to it."""
    keys = reading.keys
    if not keys or str(keys[-1]) != bundle.header.verifier_key:
        found = str(keys[-1]) if keys else "no key"
        raise bundle.refused(f"it says that it is signed by {bundle.header.verifier_key}; its events name {found}")
    given = GivenCheckpoint(bundle.header.note.encode())
    verdict = reading.verdict(given, keys[-1])
    if (verdict.verdict, verdict.size) != ("consistent", bundle.header.size):
        raise bundle.refused(
            f"its checkpoint of {verdict.size} events is {verdict.verdict}; expected one of {bundle.header.size}",
        )
    wanted = str(trusted) if trusted else before
    if wanted is not None and wanted not in map(str, keys[vouched:]):
        raise bundle.refused(
            f"it is signed by {keys[-1]}: the key that is trusted here, {wanted}, doesn't vouch for that one. If you "
            "know that the ledger's key was replaced, name the new one with --key",
        )


def _require_readable(bundle: UntrustedBundle, here: _KnownRows, examine: Examine, progress: Progress) -> None:
    """Refuse a bundle with new events if a reader of its ledger would refuse an event in it."""
    if bundle.header.size <= here.size:
        return
    progress(f"reading {bundle.header.size} events")
    bundle.rewind()
    complaint = examine(bundle.header.ledger_id, chain(here.rows(bundle.header.first_seq - 1), bundle.rows()))
    if complaint is not None:
        raise BundleRefused(
            f"{str(bundle.path)!r}: {complaint}; nothing was imported: readers of that ledger refuse it; "
            "ask its owner",
            hint="forge ledger verify --help",
        )


def _read_blobs(bundle: UntrustedBundle, provided: ProvidedBlobs, progress: Progress) -> None:
    """Hash every blob; refuse a bundle with one that no event names, which would only fill the disk."""
    for digest, chunks in bundle.blobs():
        provided.take(digest, chunks)
        if len(provided.digests) % 500 == 0:
            progress(f"checked {len(provided.digests)} of {bundle.header.blobs} blobs")
    unnamed = provided.unnamed()
    if unnamed is not None:
        raise bundle.refused(f"it has blob {unnamed}, which none of its events names")


def _sizes(bundle: UntrustedBundle, here: _KnownRows) -> set[int]:
    """Return the sizes at which the rows state a root."""
    rows = [row.payload.encode() for row in here.rows(bundle.header.first_seq - 1) if _speaks_of_sizes(row.type)]
    bundle.rewind()
    lines = (line for line in bundle.event_lines() if any(name in line for name in _TYPES_WITH_SIZES))
    rows += [str(document.get("payload")).encode() for document in map(_loaded, lines) if document]
    return sizes_in(rows) | {bundle.header.size}


def _speaks_of_sizes(type_name: str) -> bool:
    return f'"{type_name}"'.encode() in _TYPES_WITH_SIZES


def _loaded(line: bytes) -> dict[str, object]:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}  # the check of the rows refuses it
    return document if isinstance(document, dict) else {}


def _payload(row: StoredRow) -> dict[str, object]:
    return _loaded(row.payload.encode())


def _digest(bundle: UntrustedBundle, text: str, row: StoredRow) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size or digest.hex() != text:
        raise bundle.refused(f"event {row.seq} names the blob {text[:80]!r}, which is no digest")
    return digest


def _auditor_form(value: object) -> object:
    """Return a column as the auditor reads it from a database: text as bytes."""
    return value.encode() if isinstance(value, str) else value


def _forked(bundle: UntrustedBundle, there: str, here: str) -> LedgerForked:
    return LedgerForked(
        f"{str(bundle.path)!r} is of another continuation of ledger {bundle.header.ledger_id}: {there}, {here} here; "
        "nothing was imported: ask its owner which one is right",
        hint="forge ledger imported",
    )
