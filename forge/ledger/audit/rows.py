"""The audit's view of rows: whether each follows from those before it, whoever's ledger they are.

The same reading serves this ledger, those that were imported into it, and bundles that strangers send.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping

from forge.errors import LedgerCorrupt
from forge.ledger.audit.envelope import COLUMNS, AuditedRow, derived_hash, hex_of, malformed, quick_hash, text_of
from forge.ledger.audit.evidence import Evidence
from forge.ledger.audit.outline import Outlines
from forge.ledger.audit.payload import canonical_text, quick_document
from forge.ledger.audit.report import AuditReport, CheckpointVerdict, Problem, Vouching
from forge.ledger.audit.signatures import SPEAKING_OF_SIZES, GivenCheckpoint, Signatures, sizes_in
from forge.ledger.audit.tree import Frontier, StoredNodes
from forge.proof.note import VerifierKey

_TELLING = frozenset(
    {
        b"LedgerOpened",
        b"LedgerImported",
        b"LedgerKeyAdopted",
        b"LedgerKeyRotated",
        b"LedgerRestored",
        b"CheckpointPublished",
    }
)
"""Types whose content says something of the ledger itself."""


class Reading:
    """What one pass over the rows remembers: the last hash, and each stream's length."""

    def __init__(self, evidence: Evidence | None) -> None:
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
        """Place and payload of each event that says what was imported."""

    def begin(self, connection: sqlite3.Connection, *, asked: Collection[int]) -> None:
        """Take the ledger's name and where its chain begins; raise LedgerCorrupt without them.

        `asked` are sizes to take the root at, beside those that recorded checkpoints speak of.
        """
        rows = connection.execute("SELECT ledger_id, origin, format, genesis_hash, one FROM ledger_meta").fetchall()
        if len(rows) != 1 or rows[0][4] != 1:
            raise LedgerCorrupt(f"ledger_meta has {len(rows)} rows, expected one, numbered 1")
        ledger_id, origin, format_name, genesis, _ = rows[0]
        derived = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id).digest()
        if format_name != b"forge.ledger.v1" or genesis != derived:
            raise LedgerCorrupt(f"genesis hash: expected {derived.hex()}, found {genesis.hex()}")
        own = connection.execute(f"SELECT payload FROM event WHERE type IN ({SPEAKING_OF_SIZES})")  # noqa: S608
        sizes = sizes_in(payload for (payload,) in own) | set(asked)
        self.start(ledger_id.decode(), origin.decode(), sizes, StoredNodes(connection))

    def start(self, ledger_id: str, origin: str, sizes: Collection[int], nodes: StoredNodes) -> None:
        """Read the rows of this ledger from its first one on, and take its root at each of `sizes`."""
        self.last_hash = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id.encode()).digest()
        self._ledger_id, self._origin = ledger_id, origin
        self._signatures = Signatures(ledger_id, origin)
        self._nodes = nodes
        self._tree = Frontier(nodes, sizes)

    def rows(self, connection: sqlite3.Connection) -> Iterator[list[Problem]]:
        """The problems of each row that has any, in order."""
        for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY seq"):  # noqa: S608
            found = self.problems(row)
            if found:
                yield found

    def left_over(self) -> list[Problem]:
        """What is stored beyond what the rows give; asked for after the last one."""
        return self._nodes.left_over() if self._nodes and self.events else []

    def verdict(self, given: GivenCheckpoint, key: VerifierKey | None, *, whole: bool = True) -> CheckpointVerdict:
        """How the ledger stands to a checkpoint that was kept elsewhere; `whole`: it was read to its end."""
        root = self._tree.roots.get(given.size) if self._tree else None
        return given.judged(self._signatures, key, self.events, root, whole=whole)

    @property
    def signatures(self) -> Signatures:
        """The keys that the rows name, and what they signed."""
        return self._signatures

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
        self,
        problems: tuple[Problem, ...],
        verdict: CheckpointVerdict | None,
        *,
        imported: int,
        vouching: Vouching | None = None,
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
            keys=tuple(self._signatures.uses),
            vouching=vouching,
        )

    def problems(self, row: AuditedRow) -> list[Problem]:
        """How this row fails to follow from those before it, and what its payload names in vain."""
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
        if kind in _TELLING or seq == 1 or (self._evidence is not None and self._evidence.asks(kind, payload)):
            return self._read(row, payload)
        if not self._outlines.fit(kind, payload):
            return self._closely(dict(zip(COLUMNS, row, strict=True)))
        self._streams[stream] = length
        return self._step(seq, event_hash)

    def _read(self, row: AuditedRow, payload: bytes) -> list[Problem]:
        """What is wrong with what the payload says, in a row that follows in every way."""
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

    def _closely(self, row: dict[str, object]) -> list[Problem]:
        """The same of any row, with a name for everything that is wrong."""
        seq = row["seq"]
        assert isinstance(seq, int)
        fault = next(malformed(seq, row), None)
        if fault is not None:
            return [fault, *self._step(seq, row["event_hash"])]
        found = [
            Problem(seq, what, str(expected), str(actual))
            for what, expected, actual in self._comparisons(seq, row)
            if expected != actual
        ]
        payload, version = row["payload"], row["schema_version"]
        assert isinstance(payload, bytes)
        assert isinstance(version, int)
        found += self._payload_problems(seq, str(text_of(row["type"])), version, payload)
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
        yield "prev_hash", self.last_hash.hex(), hex_of(row["prev_hash"])
        yield "payload_sha256", hashlib.sha256(payload).hexdigest(), hex_of(row["payload_sha256"])
        yield "event_hash", derived_hash(row), hex_of(row["event_hash"])
        self._streams[stream] = self._streams.get(stream, 0) + 1
        yield f"stream_version of {text_of(stream)}", self._streams[stream], row["stream_version"]

    def _payload_problems(self, seq: int, type_name: str, version: int, payload: bytes) -> list[Problem]:
        plain = quick_document(payload)
        if plain is not None:
            return self._content_problems(seq, type_name, version, plain)
        try:
            text = payload.decode()
            document, canonical = canonical_text(text)
        except (ValueError, RecursionError) as error:
            return [Problem(seq, "payload", "canonical JSON", str(error))]
        if canonical != text or not isinstance(document, dict):
            return [Problem(seq, "payload", f"canonical JSON: {canonical[:200]}", text[:200])]
        return self._content_problems(seq, type_name, version, document)

    def _content_problems(
        self, seq: int, type_name: str, version: int, document: Mapping[str, object]
    ) -> list[Problem]:
        if seq == 1 or type_name == "LedgerOpened":
            said = (seq, type_name, document.get("ledger_id"), document.get("origin"))
            meant = (1, "LedgerOpened", self._ledger_id, self._origin)
            if said != meant:
                return [Problem(seq, "LedgerOpened", str(meant), str(said))]
        if type_name == "LedgerImported":
            self.imports.append((seq, document))
        found = self._signatures.problems(seq, type_name, document, self.roots)
        return found + (self._evidence.problems(seq, type_name, version, document) if self._evidence else [])
