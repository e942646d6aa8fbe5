"""Derives a ledger again from its raw rows and says where they differ; it doubts the writer.

Nothing here is shared with the code that writes: the standard library reads the rows, hashes them and renders
their envelopes. Stored payload bytes are hashed as they stand; their form is checked with every number's text
kept, so no second JSON library has to agree with the first about how to print a float.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from forge.errors import LedgerCorrupt, WorkspaceNotFound
from forge.ledger.audit_evidence import Evidence
from forge.ledger.audit_report import PROBLEM_LIMIT, AuditReport, Problem

_APPLICATION_ID = 0x464F5247
_SCHEMA_SHA256 = "713cbd4a254d368fd95c17765ceb98c430ffd2642a7586182801be61bf271c45"
_TRIGGERS = (
    "event_accepts_only_the_next",
    "event_refuses_delete",
    "event_refuses_update",
    "ledger_meta_refuses_a_second_row",
    "ledger_meta_refuses_delete",
    "ledger_meta_refuses_update",
)
_COLUMNS = (
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
_DIGESTS = frozenset({"payload_sha256", "prev_hash", "event_hash"})
_TEXTS = frozenset(_COLUMNS) - _DIGESTS - {"seq", "stream_version", "schema_version", "payload"}


def audit(path: Path, *, runs: Path | None = None) -> AuditReport:
    """Check every row, the schema, the file, and, given `runs`, all evidence named.

    Raises WorkspaceNotFound if there is no file. Problems come in the order of the rows, then those of
    the file as a whole; the first is where to begin.
    """
    if not path.is_file():
        raise WorkspaceNotFound(f"no ledger at {str(path)!r}", hint="forge init")
    reading = _Reading(Evidence(runs) if runs is not None else None)
    of_rows: list[Problem] = []
    of_file: list[Problem] = []
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)) as connection:
            connection.text_factory = bytes
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            of_file += _file_problems(connection)
            reading.begin(connection)
            for row in connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM event ORDER BY seq"):  # noqa: S608
                of_rows += reading.problems(dict(zip(_COLUMNS, row, strict=True)))
                if len(of_rows) >= PROBLEM_LIMIT:
                    break
            of_file += _page_problems(connection)
    except (sqlite3.Error, LedgerCorrupt) as error:
        of_file.append(Problem(None, "database", "a readable ledger", str(error)))
    if reading.events == 0 and not of_file:
        of_file.append(Problem(None, "events", "LedgerOpened as the first event", "no event"))
    problems = tuple(of_rows + of_file)
    head = reading.last_hash.hex() if reading.events else None
    return AuditReport(ok=not problems, events=reading.events, head=head, problems=problems)


class _Reading:
    """What one pass over the rows remembers: the last hash, and each stream's length."""

    def __init__(self, evidence: Evidence | None) -> None:
        self.events = 0
        self.last_hash = b""
        self._seq = 0
        self._streams: dict[bytes, int] = {}
        self._ledger_id = ""
        self._origin = ""
        self._evidence = evidence

    def begin(self, connection: sqlite3.Connection) -> None:
        """Take the ledger's name and where its chain begins; raise LedgerCorrupt without them."""
        rows = connection.execute("SELECT ledger_id, origin, format, genesis_hash FROM ledger_meta").fetchall()
        if len(rows) != 1:
            raise LedgerCorrupt(f"ledger_meta has {len(rows)} rows, expected 1")
        ledger_id, origin, format_name, genesis = rows[0]
        derived = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id).digest()
        if format_name != b"forge.ledger.v1" or genesis != derived:
            raise LedgerCorrupt(f"genesis hash: expected {derived.hex()}, found {genesis.hex()}")
        self.last_hash = genesis
        self._ledger_id, self._origin = ledger_id.decode(), origin.decode()

    def problems(self, row: dict[str, object]) -> list[Problem]:
        """How this row fails to follow from those before it, and what its payload names in vain."""
        seq = row["seq"]
        assert isinstance(seq, int)
        malformed = next(_malformed(seq, row), None)
        if malformed is not None:
            self._step(seq, row["event_hash"])
            return [malformed]
        found = [
            Problem(seq, what, str(expected), str(actual))
            for what, expected, actual in self._comparisons(seq, row)
            if expected != actual
        ]
        payload = row["payload"]
        assert isinstance(payload, bytes)
        found += self._payload_problems(seq, str(_text(row["type"])), payload)
        self._step(seq, row["event_hash"])
        return found

    def _step(self, seq: int, event_hash: object) -> None:
        self.events += 1
        self._seq = seq
        self.last_hash = event_hash if isinstance(event_hash, bytes) else b""

    def _comparisons(self, seq: int, row: dict[str, object]) -> Iterator[tuple[str, object, object]]:
        stream, payload = row["stream"], row["payload"]
        assert isinstance(stream, bytes)
        assert isinstance(payload, bytes)
        yield "seq", self._seq + 1, seq
        yield "prev_hash", self.last_hash.hex(), _hex(row["prev_hash"])
        yield "payload_sha256", hashlib.sha256(payload).hexdigest(), _hex(row["payload_sha256"])
        yield "event_hash", _event_hash(row), _hex(row["event_hash"])
        self._streams[stream] = self._streams.get(stream, 0) + 1
        yield f"stream_version of {_text(stream)}", self._streams[stream], row["stream_version"]

    def _payload_problems(self, seq: int, type_name: str, payload: bytes) -> list[Problem]:
        try:
            text = payload.decode()
            document = json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant)
            canonical = _render(document)
        except (ValueError, RecursionError) as error:
            return [Problem(seq, "payload", "canonical JSON", str(error))]
        if canonical != text or not isinstance(document, dict):
            return [Problem(seq, "payload", f"canonical JSON: {canonical[:200]}", text[:200])]
        if seq == 1 or type_name == "LedgerOpened":
            said = (seq, type_name, document.get("ledger_id"), document.get("origin"))
            meant = (1, "LedgerOpened", self._ledger_id, self._origin)
            if said != meant:
                return [Problem(seq, "LedgerOpened", str(meant), str(said))]
        return self._evidence.problems(seq, type_name, document) if self._evidence else []


class _Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} isn't JSON")


def _render(node: object) -> str:
    """The canonical text: keys sorted, no spaces, strings as plain as JSON allows; numbers as they were."""
    match node:
        case _Number():
            return str(node)
        case dict():
            return "{" + ",".join(f"{_quoted(key)}:{_render(node[key])}" for key in sorted(node)) + "}"
        case list():
            return "[" + ",".join(map(_render, node)) + "]"
        case _:
            return _quoted(node)


def _quoted(scalar: object) -> str:
    return json.dumps(scalar, ensure_ascii=False)


def _malformed(seq: int, row: dict[str, object]) -> Iterator[Problem]:
    """A value that no writer of ours could have stored."""
    for name in sorted(_TEXTS | _DIGESTS | {"payload"}):
        value = row[name]
        if value is None and name in ("causation_id", "idempotency_key"):
            continue
        if not isinstance(value, bytes) or (name in _DIGESTS and len(value) != hashlib.sha256().digest_size):
            yield Problem(seq, name, "32 bytes" if name in _DIGESTS else "text", repr(value)[:200])
        elif name in _TEXTS and _undecodable(value):
            yield Problem(seq, name, "UTF-8", repr(value)[:200])


def _undecodable(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def _event_hash(row: dict[str, object]) -> str:
    """SHA-256 over 0x00 and the canonical JSON of every column but the payload and the hash itself."""
    columns = {
        name: _hex(value) if name in _DIGESTS else _text(value) if name in _TEXTS else value
        for name, value in row.items()
        if name not in ("payload", "event_hash")
    }
    text = json.dumps(columns, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"\x00" + text.encode()).hexdigest()


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)


def _text(value: object) -> str | None:
    return value.decode() if isinstance(value, bytes) else None


def _file_problems(connection: sqlite3.Connection) -> list[Problem]:
    """The file's header, and the tables and triggers that guard the rows."""
    found: list[Problem] = []
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if application_id != _APPLICATION_ID:
        found.append(Problem(None, "application id", hex(_APPLICATION_ID), hex(application_id)))
    digest = hashlib.sha256()
    triggers = set()
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"
    for kind, name, table, sql in connection.execute(query):
        if kind == b"trigger":
            triggers.add(name.decode())
        elif table.startswith((b"alembic_version", b"sqlite_stat", b"_litestream_")):
            continue
        digest.update(b"".join(field + b"\x00" for field in (kind, name, table, sql)))
    found += [Problem(None, f"trigger {name}", "present", "missing") for name in _TRIGGERS if name not in triggers]
    if digest.hexdigest() != _SCHEMA_SHA256 and not found:
        found.append(Problem(None, "schema", _SCHEMA_SHA256, digest.hexdigest()))
    return found


def _page_problems(connection: sqlite3.Connection) -> list[Problem]:
    """What SQLite itself finds: damaged pages, indexes that disagree with rows, CHECK and UNIQUE."""
    rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    texts = [row[0].decode() for row in rows]
    return [] if texts == ["ok"] else [Problem(None, "integrity_check", "ok", text) for text in texts]
