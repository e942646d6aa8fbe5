"""Writes and reads bundles: one file with events, the blobs that they name, and the signed checkpoint at their end.

    forge.bundle.v1
    {"blobs":2,"first_seq":1,"format":"forge.bundle.v1",...}     the header: canonical JSON
    {"actor":"cli:ada@lab",...,"seq":1,...}                      an event a line: every column, digests in hex
    blob <sha256> <bytes>                                        then the bytes and a newline; by digest, ascending
    end <sha256 of everything before this line>

The same events give the same bytes. Data from outside is read a line or a megabyte at a time. A declared size is
compared with the file before anything is read for it.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, BinaryIO, Literal, Self

import orjson
from pydantic import Field, ValidationError

from forge.domain.digest import Digest, Value, canonical
from forge.errors import BundleRefused, UsageError
from forge.ledger.batch import STREAM_LIMIT
from forge.ledger.blobs import DIGEST, BlobStore
from forge.ledger.chain import StoredRow
from forge.ledger.failures import storage_errors
from forge.ledger.statements import PAYLOAD_LIMIT_BYTES

FIRST_LINE = b"forge.bundle.v1\n"
"""First line of a bundle: its format."""
HEADER_LIMIT_BYTES = 1 << 20
"""Longest header in bytes. Chosen; it bounds the memory that another workspace's file can take."""
EVENT_LIMIT_BYTES = 128 * 1024
"""Longest line of an event in bytes. A payload of control characters becomes six times as long in JSON."""
NUMBER_LIMIT = 1 << 53
"""Upper bound of numbers in a bundle: JSON readers with doubles are exact below it."""
CHUNK_BYTES = 1 << 20
"""Number of bytes of a blob that are read at a time, so that a large blob needs little memory."""
_DIGESTS = ("payload_sha256", "prev_hash", "event_hash")
"""Fields of a bundle's event that are digests in hex."""
_NUMBERS = ("seq", "stream_version", "schema_version")
"""Fields of a bundle's event that are whole numbers."""
_MAY_BE_NULL = ("causation_id", "idempotency_key")
"""Columns that may be null."""
_BLOB = re.compile(rb"blob ([0-9a-f]{64}) (0|[1-9][0-9]{0,15})\n")
"""Pattern of the line before a blob: its digest and its length in bytes."""
_END = re.compile(rb"end ([0-9a-f]{64})\n")
"""Pattern of a bundle's last line: the digest of all before it."""


class BundleHeader(Value):
    """What a bundle says of itself; not believed before it is checked."""

    format: Literal["forge.bundle.v1"] = "forge.bundle.v1"
    ledger_id: Annotated[str, Field(min_length=1, max_length=100)]
    origin: Annotated[str, Field(min_length=1, max_length=200)]
    first_seq: Annotated[int, Field(ge=1, lt=NUMBER_LIMIT)]
    """The first event in it."""
    size: Annotated[int, Field(ge=1, lt=NUMBER_LIMIT)]
    """The last event in it; the checkpoint covers exactly that many events."""
    blobs: Annotated[int, Field(ge=0, lt=NUMBER_LIMIT)]
    note: str
    """The signed checkpoint of that size."""
    verifier_key: str
    """The key that signed the checkpoint, in verifier form."""


def write_bundle(
    stream: BinaryIO, header: BundleHeader, rows: Iterable[StoredRow], digests: Iterable[Digest], blobs: BlobStore
) -> Digest:
    """Write a whole bundle; return the digest on its last line."""
    whole = hashlib.sha256()

    def put(content: bytes) -> None:
        whole.update(content)
        stream.write(content)

    put(FIRST_LINE)
    put(canonical(header) + b"\n")
    for row in rows:
        put(event_line(row) + b"\n")
    for digest in sorted(digests):
        content = blobs.get(digest)
        put(f"blob {digest} {len(content)}\n".encode())
        put(content)
        put(b"\n")
    stream.write(f"end {whole.hexdigest()}\n".encode())
    return whole.hexdigest()


def event_line(row: StoredRow) -> bytes:
    """Return a row as canonical JSON, with digests in hex."""
    columns: dict[str, object] = row._asdict()
    for name in _DIGESTS:
        columns[name] = getattr(row, name).hex()
    return orjson.dumps(columns, option=orjson.OPT_SORT_KEYS)


class UntrustedBundle:
    """A bundle from another machine, read in order: header, events, blobs, end. Its content is only a claim."""

    def __init__(self, path: Path) -> None:
        with storage_errors(path):
            if not path.is_file():
                raise UsageError(f"no bundle at {str(path)!r}: expected a file that `forge ledger export` wrote")
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self.path = path
        self.stream = os.fdopen(descriptor, "rb", buffering=CHUNK_BYTES)
        found = os.fstat(descriptor)
        self.size_bytes = found.st_size if stat.S_ISREG(found.st_mode) else 0
        self._whole = hashlib.sha256()
        try:
            self.header = self._header()
        except BaseException:
            self.stream.close()
            raise
        self._events_at = self.stream.tell()
        self._before_events = self._whole.copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.close()

    def rewind(self) -> None:
        """Go back to the first event."""
        self.stream.seek(self._events_at)
        self._whole = self._before_events.copy()

    def event_lines(self) -> Iterator[bytes]:
        """Yield the lines of the events unchanged, without their newlines."""
        for number in range(self.header.first_seq, self.header.size + 1):
            yield self._line(EVENT_LIMIT_BYTES, f"event {number}")

    def rows(self) -> Iterator[StoredRow]:
        """Yield the events; raise BundleRefused at the first line that Forge's writer can't have written."""
        for number, line in enumerate(self.event_lines(), start=self.header.first_seq):
            yield self._row(line, number)

    def blobs(self) -> Iterator[tuple[Digest, Iterator[bytes]]]:
        """Yield each blob's digest and its bytes in hashed chunks; use them up before the next blob."""
        before = b""
        for number in range(1, self.header.blobs + 1):
            line = self._line(100, f"blob {number}")
            match = _BLOB.fullmatch(line + b"\n")
            if not match:
                raise self.refused(f"blob {number} begins with {line[:100]!r}, expected blob <sha256> <bytes>")
            if match[1] <= before:
                raise self.refused(
                    f"blob {match[1].decode()} is out of order, or occurs twice: expected growing digests"
                )
            before = match[1]
            yield match[1].decode(), self._chunks(match[1].decode(), int(match[2]))

    def finish(self) -> Digest:
        """Read the last line; return its digest, or raise BundleRefused unless it is right and the file ends."""
        found = self._whole.hexdigest()
        line = self._line(100, "the last line", hashed=False)
        match = _END.fullmatch(line + b"\n")
        if not match or match[1].decode() != found:
            raise self.refused(f"it ends with {line[:100]!r}, expected 'end {found}': it was changed on the way")
        if self.stream.read(1):
            raise self.refused("something follows its last line")
        return found

    def _header(self) -> BundleHeader:
        if self.stream.readline(len(FIRST_LINE)) != FIRST_LINE:
            self.stream.seek(0)
            begins = self.stream.read(20)
            newer = " (this one is of another version: upgrade Forge)" if begins.startswith(b"forge.bundle.") else ""
            raise UsageError(
                f"{str(self.path)!r} is no bundle: it begins with {begins!r}, expected "
                f"{FIRST_LINE.decode().strip()!r}{newer}"
            )
        self._whole.update(FIRST_LINE)
        line = self._line(HEADER_LIMIT_BYTES, "the header")
        try:
            header = BundleHeader.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            raise self.refused(f"its header can't be read: {first['loc']}: {first['msg']}") from error
        if canonical(header) != line or header.first_seq > header.size:
            raise self.refused("its header isn't canonical JSON")
        return header

    def _line(self, limit: int, what: str, *, hashed: bool = True) -> bytes:
        line = self.stream.readline(limit + 1)
        if len(line) > limit:
            raise self.refused(f"{what} is longer than {limit} bytes")
        if not line.endswith(b"\n"):
            raise self.refused(f"{what} is missing or cut off: the file has {self.size_bytes} bytes")
        if hashed:
            self._whole.update(line)
        return line[:-1]

    def _row(self, line: bytes, number: int) -> StoredRow:
        try:
            columns = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self.refused(f"event {number} can't be read ({error})") from error
        fault = _fault(columns)
        if fault is not None:
            raise self.refused(f"event {number}: {fault}")
        row = StoredRow(**columns | {name: bytes.fromhex(columns[name]) for name in _DIGESTS})
        if row.seq != number:
            raise self.refused(f"event {row.seq} stands where event {number} was expected")
        if event_line(row) != line:
            raise self.refused(f"event {number} isn't canonical JSON")
        return row

    def _chunks(self, digest: Digest, size_bytes: int) -> Iterator[bytes]:
        left = size_bytes
        if left > self.size_bytes - self.stream.tell():
            raise self.refused(f"blob {digest} says that it has {size_bytes} bytes, which the file doesn't have")
        hashed = hashlib.sha256()
        while left:
            chunk = self.stream.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise self.refused(f"blob {digest} is cut off")
            left -= len(chunk)
            hashed.update(chunk)
            self._whole.update(chunk)
            yield chunk
        if hashed.hexdigest() != digest:
            raise self.refused(f"blob {digest} has content {hashed.hexdigest()}")
        if self._line(1, f"the end of blob {digest}"):
            raise self.refused(f"blob {digest} is longer than it says")

    def refused(self, what: str) -> BundleRefused:
        """Return the error for a bundle that isn't imported."""
        return BundleRefused(
            f"{str(self.path)!r}: {what}; nothing was imported: get the bundle again",
            hint="forge ledger import --help",
        )


def _fault(columns: object) -> str | None:
    """Return why a line is no row; None if it is one."""
    if not isinstance(columns, dict) or set(columns) != set(StoredRow._fields):
        return f"expected exactly the columns {', '.join(StoredRow._fields)}"
    for name, value in columns.items():
        if name in _NUMBERS:
            fine = type(value) is int and 1 <= value < NUMBER_LIMIT
        elif name in _DIGESTS:
            fine = isinstance(value, str) and bool(DIGEST.fullmatch(value))
        elif name == "payload":
            fine = isinstance(value, str) and 2 <= len(value.encode()) <= PAYLOAD_LIMIT_BYTES
        else:
            fine = _is_text(value) or (value is None and name in _MAY_BE_NULL)
        if not fine:
            return f"{name} is {str(value)[:80]!r}, expected another type or form"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= STREAM_LIMIT + 20 and value.isprintable()
