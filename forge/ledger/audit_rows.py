"""The audit's view of rows: whether each follows from those before it, whoever's ledger they are.

What a row must look like is written down here a second time, apart from the writer. The same reading serves this
ledger, those that were imported into it, and bundles that strangers send.
"""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from json.encoder import encode_basestring

from forge.errors import LedgerCorrupt
from forge.ledger.audit_evidence import Evidence
from forge.ledger.audit_report import AuditReport, CheckpointVerdict, Problem
from forge.ledger.audit_signed import SPEAKING_OF_SIZES, GivenCheckpoint, Signatures, sizes_in
from forge.ledger.audit_tree import Frontier, StoredNodes
from forge.proof.note import VerifierKey

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
_ENVELOPE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_DIGESTS = frozenset({"payload_sha256", "prev_hash", "event_hash"})
_NUMBERS = ("stream_version", "schema_version")
_TEXTS = frozenset(COLUMNS) - _DIGESTS - {"seq", *_NUMBERS, "payload"}
_STORED_AS_BYTES = tuple(sorted(_TEXTS | _DIGESTS | {"payload"}))


class Reading:
    """What one pass over the rows remembers: the last hash, and each stream's length."""

    def __init__(self, evidence: Evidence | None) -> None:
        self.events = 0
        self.last_hash = b""
        self._seq = 0
        self._streams: dict[bytes, int] = {}
        self._ledger_id = ""
        self._origin = ""
        self._evidence = evidence
        self._tree: Frontier | None = None
        self._nodes: StoredNodes | None = None
        self._signatures = Signatures("", "")
        self.imports: list[tuple[int, Mapping[str, object]]] = []
        """Place and payload of each event that says what was imported."""

    def begin(self, connection: sqlite3.Connection, *, asked: int | None) -> None:
        """Take the ledger's name and where its chain begins; raise LedgerCorrupt without them.

        `asked` is a size to take the root at, beside those that recorded checkpoints speak of.
        """
        rows = connection.execute("SELECT ledger_id, origin, format, genesis_hash, one FROM ledger_meta").fetchall()
        if len(rows) != 1 or rows[0][4] != 1:
            raise LedgerCorrupt(f"ledger_meta has {len(rows)} rows, expected one, numbered 1")
        ledger_id, origin, format_name, genesis, _ = rows[0]
        derived = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id).digest()
        if format_name != b"forge.ledger.v1" or genesis != derived:
            raise LedgerCorrupt(f"genesis hash: expected {derived.hex()}, found {genesis.hex()}")
        own = connection.execute(f"SELECT payload FROM event WHERE type IN ({SPEAKING_OF_SIZES})")  # noqa: S608
        sizes = sizes_in(payload for (payload,) in own) | ({asked} if asked is not None else set())
        self.start(ledger_id.decode(), origin.decode(), sizes, StoredNodes(connection))

    def start(self, ledger_id: str, origin: str, sizes: Collection[int], nodes: StoredNodes) -> None:
        """Read the rows of this ledger from its first one on, and take its root at each of `sizes`."""
        self.last_hash = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id.encode()).digest()
        self._ledger_id, self._origin = ledger_id, origin
        self._signatures = Signatures(ledger_id, origin)
        self._nodes = nodes
        self._tree = Frontier(nodes, sizes)

    def rows(self, connection: sqlite3.Connection) -> Iterator[list[Problem]]:
        """The problems of each row, in order."""
        for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY seq"):  # noqa: S608
            yield self.problems(dict(zip(COLUMNS, row, strict=True)))

    def left_over(self) -> list[Problem]:
        """What is stored beyond what the rows give; asked for after the last one."""
        return self._nodes.left_over() if self._nodes and self.events else []

    def verdict(self, given: GivenCheckpoint, key: VerifierKey | None) -> CheckpointVerdict:
        """How the ledger stands to a checkpoint that was kept elsewhere."""
        keys = self._signatures.keys if key is None else [key]
        root = self._tree.roots.get(given.size) if self._tree else None
        return given.judged(self._signatures.name, keys, self.events, root)

    def key_problems(self, key: VerifierKey | None) -> list[Problem]:
        """Whether the ledger names the key that is trusted."""
        if key is None or key in self._signatures.keys:
            return []
        named = ", ".join(map(str, self._signatures.keys)) or "none"
        return [Problem(None, "key", str(key), named)]

    @property
    def root(self) -> bytes:
        """Of the tree over the rows so far."""
        return self._tree.root if self._tree else b""

    @property
    def roots(self) -> Mapping[int, bytes]:
        """The root at each size that was asked for and reached."""
        return self._tree.roots if self._tree else {}

    @property
    def keys(self) -> list[VerifierKey]:
        """The keys that the rows name, the one in force last."""
        return self._signatures.keys

    def report(
        self, problems: tuple[Problem, ...], verdict: CheckpointVerdict | None, *, imported: int
    ) -> AuditReport:
        """The answer; `imported` is how many events of other ledgers were read."""
        return AuditReport(
            ok=not problems,
            events=self.events,
            head=self.last_hash.hex() if self.events else None,
            root=self._tree.root.hex() if self._tree and self.events else None,
            signed=self._signatures.signed,
            imported=imported,
            checkpoint=verdict,
            problems=problems,
        )

    def problems(self, row: dict[str, object]) -> list[Problem]:
        """How this row fails to follow from those before it, and what its payload names in vain."""
        seq = row["seq"]
        assert isinstance(seq, int)
        malformed = next(_malformed(seq, row), None)
        if malformed is not None:
            return [malformed, *self._step(seq, row["event_hash"])]
        found = [
            Problem(seq, what, str(expected), str(actual))
            for what, expected, actual in self._comparisons(seq, row)
            if expected != actual
        ]
        payload = row["payload"]
        assert isinstance(payload, bytes)
        found += self._payload_problems(seq, str(_text(row["type"])), payload)
        return found + self._step(seq, row["event_hash"])

    def _step(self, seq: int, event_hash: object) -> list[Problem]:
        self.events += 1
        self._seq = seq
        self.last_hash = event_hash if isinstance(event_hash, bytes) else b""
        return self._tree.add(event_hash) if self._tree else []

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
            document, canonical = _canonical(text)
        except (ValueError, RecursionError) as error:
            return [Problem(seq, "payload", "canonical JSON", str(error))]
        if canonical != text or not isinstance(document, dict):
            return [Problem(seq, "payload", f"canonical JSON: {canonical[:200]}", text[:200])]
        if seq == 1 or type_name == "LedgerOpened":
            said = (seq, type_name, document.get("ledger_id"), document.get("origin"))
            meant = (1, "LedgerOpened", self._ledger_id, self._origin)
            if said != meant:
                return [Problem(seq, "LedgerOpened", str(meant), str(said))]
        if type_name == "LedgerImported":
            self.imports.append((seq, document))
        found = self._signatures.problems(seq, type_name, document, self.roots)
        return found + (self._evidence.problems(seq, type_name, document) if self._evidence else [])


def _canonical(text: str) -> tuple[object, str]:
    """A document and its canonical text; raise ValueError or RecursionError for what isn't JSON.

    If the standard library's own encoder gives the text back, it is canonical and nothing needs a closer look.
    """
    with suppress(ValueError):
        document = json.loads(text)
        if _ENVELOPE.encode(document) == text:
            return document, text
    document = json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant)
    return document, _render(document)


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
    return encode_basestring(scalar) if isinstance(scalar, str) else json.dumps(scalar)


def _malformed(seq: int, row: dict[str, object]) -> Iterator[Problem]:
    """A value that no writer of ours could have stored."""
    for name in _NUMBERS:
        if not isinstance(row[name], int):
            yield Problem(seq, name, "a whole number", repr(row[name])[:200])
    for name in _STORED_AS_BYTES:
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
    return hashlib.sha256(b"\x00" + _ENVELOPE.encode(columns).encode()).hexdigest()


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)


def _text(value: object) -> str | None:
    return value.decode() if isinstance(value, bytes) else None
