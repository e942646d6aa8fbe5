"""Checks that each row follows from the rows before it.

The same code reads this ledger, the ledgers imported into it, and bundles from other machines.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping

from forge.errors import LedgerCorrupt
from forge.ledger.audit.envelope import COLUMNS, AuditedRow, derived_hash, hex_of, malformed, quick_hash, text_of
from forge.ledger.audit.evidence import EvidenceCheck
from forge.ledger.audit.outline import Outlines
from forge.ledger.audit.payload import canonical_text, quick_document
from forge.ledger.audit.report import AuditProblem, AuditReport, CheckpointVerdict, Vouching
from forge.ledger.audit.signatures import STATING_A_ROOT, GivenCheckpoint, Signatures, sizes_in
from forge.ledger.audit.tree import Frontier, StoredNodes
from forge.proof.note import VerifierKey

_LEDGER_TYPES = frozenset(
    {
        b"LedgerOpened",
        b"LedgerImported",
        b"LedgerKeyAdopted",
        b"LedgerKeyRotated",
        b"LedgerRestored",
        b"CheckpointPublished",
    }
)
"""Types of events whose content is about the ledger itself: identity, keys, checkpoints, imports."""


class Reading:
    """The state of one pass over the rows: the last hash, and each stream's length."""

    def __init__(self, evidence: EvidenceCheck | None) -> None:
        self.events = 0
        self.last_hash = b""
        self._seq = 0
        self._streams: dict[object, int] = {}
        self._outlines = Outlines()
        self._ledger_id = ""
        self._origin = ""
        self._evidence = evidence
        self._tree: Frontier | None = None
        self._nodes: StoredNodes | None = None
        self._signatures = Signatures("", "")
        self.imports: list[tuple[int, Mapping[str, object]]] = []
        """Place and payload of each LedgerImported event."""

    def begin(self, connection: sqlite3.Connection, *, asked: Collection[int]) -> None:
        """Read the ledger's name and its genesis hash; raise LedgerCorrupt without them.

        `asked` are sizes at which the root is needed, beside those that recorded checkpoints name.
        """
        rows = connection.execute("SELECT ledger_id, origin, format, genesis_hash, one FROM ledger_meta").fetchall()
        if len(rows) != 1 or rows[0][4] != 1:
            raise LedgerCorrupt(f"ledger_meta has {len(rows)} rows, expected one, numbered 1")
        ledger_id, origin, format_name, genesis, _ = rows[0]
        derived = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id).digest()
        if format_name != b"forge.ledger.v1" or genesis != derived:
            raise LedgerCorrupt(f"genesis hash: expected {derived.hex()}, found {genesis.hex()}")
        own = connection.execute(f"SELECT payload FROM event WHERE type IN ({STATING_A_ROOT})")  # noqa: S608
        sizes = sizes_in(payload for (payload,) in own) | set(asked)
        self.start(ledger_id.decode(), origin.decode(), sizes, StoredNodes(connection))

    def start(self, ledger_id: str, origin: str, sizes: Collection[int], nodes: StoredNodes) -> None:
        """Start at the ledger's first row; the root is kept at each of `sizes`."""
        self.last_hash = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id.encode()).digest()
        self._ledger_id, self._origin = ledger_id, origin
        self._signatures = Signatures(ledger_id, origin)
        self._nodes = nodes
        self._tree = Frontier(nodes, sizes)

    def rows(self, connection: sqlite3.Connection) -> Iterator[list[AuditProblem]]:
        """Yield the problems of each row that has any, in order."""
        for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY seq"):  # noqa: S608
            found = self.problems(row)
            if found:
                yield found

    def left_over(self) -> list[AuditProblem]:
        """Return a problem for each stored tree node that no row gives; call it after the last row."""
        return self._nodes.left_over() if self._nodes and self.events else []

    def verdict(self, given: GivenCheckpoint, key: VerifierKey | None, *, whole: bool = True) -> CheckpointVerdict:
        """Compare the ledger with a checkpoint that was kept elsewhere; `whole` means that it was read to its end."""
        root = self._tree.roots.get(given.size) if self._tree else None
        return given.judged(self._signatures, key, self.events, root, whole=whole)

    @property
    def signatures(self) -> Signatures:
        """Return the keys that the rows name, and what they signed."""
        return self._signatures

    @property
    def root(self) -> bytes:
        """Return the root of the tree over the rows so far."""
        return self._tree.root if self._tree else b""

    @property
    def roots(self) -> Mapping[int, bytes]:
        """Return size -> root, for each size that was asked for and reached."""
        return self._tree.roots if self._tree else {}

    @property
    def keys(self) -> list[VerifierKey]:
        """Return the keys that the rows name; the key in force is last."""
        return self._signatures.keys

    def report(
        self,
        problems: tuple[AuditProblem, ...],
        verdict: CheckpointVerdict | None,
        *,
        imported: int,
        vouching: Vouching | None = None,
    ) -> AuditReport:
        """Return the report; `imported` is the number of events of other ledgers that were read."""
        return AuditReport(
            ok=not problems,
            events=self.events,
            head=self.last_hash.hex() if self.events else None,
            root=self._tree.root.hex() if self._tree and self.events else None,
            signed=self._signatures.signed,
            imported=imported,
            checkpoint=verdict,
            problems=problems,
            keys=tuple(self._signatures.uses),
            vouching=vouching,
        )

    def problems(self, row: AuditedRow) -> list[AuditProblem]:
        """Return the problems of this row, and of the bytes that its payload names."""
        seq, _, stream, version, kind, _, _, _, _, _, _, payload, payload_sha256, prev_hash, event_hash = row
        if not (
            seq == self._seq + 1
            and prev_hash == self.last_hash
            and isinstance(payload, bytes)
            and hashlib.sha256(payload).digest() == payload_sha256
            and event_hash == quick_hash(row)
            and version == (length := self._streams.get(stream, 0) + 1)
        ):
            return self._closely(dict(zip(COLUMNS, row, strict=True)))
        if kind in _LEDGER_TYPES or seq == 1 or (self._evidence is not None and self._evidence.asks(kind, payload)):
            return self._read(row, payload)
        if not self._outlines.fit(kind, payload):
            return self._closely(dict(zip(COLUMNS, row, strict=True)))
        self._streams[stream] = length
        return self._step(seq, event_hash)

    def _read(self, row: AuditedRow, payload: bytes) -> list[AuditProblem]:
        """Return the problems of the payload's content, for a row that follows correctly."""
        seq, _, stream, version, kind, schema_version = row[:6]
        assert isinstance(seq, int)
        assert isinstance(version, int)
        assert isinstance(kind, bytes)
        assert isinstance(schema_version, int)
        document = quick_document(payload)
        if document is None:
            return self._closely(dict(zip(COLUMNS, row, strict=True)))
        self._streams[stream] = version
        return self._content_problems(seq, kind.decode(), schema_version, document) + self._step(seq, row[14])

    def _closely(self, row: dict[str, object]) -> list[AuditProblem]:
        """Check any row slowly, with a problem for each wrong value."""
        seq = row["seq"]
        assert isinstance(seq, int)
        fault = next(malformed(seq, row), None)
        if fault is not None:
            return [fault, *self._step(seq, row["event_hash"])]
        found = [
            AuditProblem(seq, what, str(expected), str(actual))
            for what, expected, actual in self._comparisons(seq, row)
            if expected != actual
        ]
        payload, version = row["payload"], row["schema_version"]
        assert isinstance(payload, bytes)
        assert isinstance(version, int)
        found += self._payload_problems(seq, str(text_of(row["type"])), version, payload)
        return found + self._step(seq, row["event_hash"])

    def _step(self, seq: int, event_hash: object) -> list[AuditProblem]:
        self.events += 1
        self._seq = seq
        self.last_hash = event_hash if isinstance(event_hash, bytes) else b""
        return self._tree.add(event_hash) if self._tree else []

    def _comparisons(self, seq: int, row: dict[str, object]) -> Iterator[tuple[str, object, object]]:
        stream, payload = row["stream"], row["payload"]
        assert isinstance(stream, bytes)
        assert isinstance(payload, bytes)
        yield "seq", self._seq + 1, seq
        yield "prev_hash", self.last_hash.hex(), hex_of(row["prev_hash"])
        yield "payload_sha256", hashlib.sha256(payload).hexdigest(), hex_of(row["payload_sha256"])
        yield "event_hash", derived_hash(row), hex_of(row["event_hash"])
        self._streams[stream] = self._streams.get(stream, 0) + 1
        yield f"stream_version of {text_of(stream)}", self._streams[stream], row["stream_version"]

    def _payload_problems(self, seq: int, type_name: str, version: int, payload: bytes) -> list[AuditProblem]:
        plain = quick_document(payload)
        if plain is not None:
            return self._content_problems(seq, type_name, version, plain)
        try:
            text = payload.decode()
            document, canonical = canonical_text(text)
        except (ValueError, RecursionError) as error:
            return [AuditProblem(seq, "payload", "canonical JSON", str(error))]
        if canonical != text or not isinstance(document, dict):
            return [AuditProblem(seq, "payload", f"canonical JSON: {canonical[:200]}", text[:200])]
        return self._content_problems(seq, type_name, version, document)

    def _content_problems(
        self, seq: int, type_name: str, version: int, document: Mapping[str, object]
    ) -> list[AuditProblem]:
        if seq == 1 or type_name == "LedgerOpened":
            said = (seq, type_name, document.get("ledger_id"), document.get("origin"))
            meant = (1, "LedgerOpened", self._ledger_id, self._origin)
            if said != meant:
                return [AuditProblem(seq, "LedgerOpened", str(meant), str(said))]
        if type_name == "LedgerImported":
            self.imports.append((seq, document))
        found = self._signatures.problems(seq, type_name, document, self.roots)
        return found + (self._evidence.problems(seq, type_name, version, document) if self._evidence else [])
