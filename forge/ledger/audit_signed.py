"""The audit's view of signatures: which keys the ledger names, and whether every recorded checkpoint holds.

Notes and signatures are read by `forge.proof`, the code that a stranger uses; the signing side has its own.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping

from forge.errors import ProofRefused, UsageError
from forge.ledger.audit_report import CheckpointVerdict, Problem, Verdict
from forge.proof.note import VerifierKey, key_id, opened, parse_checkpoint, parse_note

_ROTATION = "forge.ledger.v1/rotation"
_KEY_BYTES = 32


class Signatures:
    """The keys in the order in which they came into force, and the recorded checkpoints held against roots."""

    def __init__(self, ledger_id: str, origin: str) -> None:
        self._ledger_id = ledger_id
        self.name = "".join("-" if one.isspace() or one == "+" else one for one in f"{origin}/{ledger_id}")
        self.keys: list[VerifierKey] = []
        self.signed = 0

    def problems(
        self, seq: int, kind: str, payload: Mapping[str, object], roots: Mapping[int, bytes]
    ) -> list[Problem]:
        """What is wrong with an event that speaks of keys or checkpoints."""
        if kind == "LedgerOpened":
            return self._adopt(seq, payload) if payload.get("public_key") is not None else []
        if kind not in ("LedgerKeyAdopted", "LedgerKeyRotated", "CheckpointPublished", "LedgerRestored"):
            return []
        if payload.get("ledger_id") != self._ledger_id:
            return [Problem(seq, kind, self._ledger_id, str(payload.get("ledger_id")))]
        if kind == "LedgerKeyAdopted":
            return self._adopt(seq, payload)
        if kind == "LedgerRestored":
            return self._restored(seq, payload, roots)
        try:
            if kind == "LedgerKeyRotated":
                return self._rotate(seq, payload)
            return self._checkpoint(seq, payload, roots)
        except (UsageError, ProofRefused, ValueError) as error:
            return [Problem(seq, kind, "a note signed by the key in force", str(error)[:200])]

    def _adopt(self, seq: int, payload: Mapping[str, object]) -> list[Problem]:
        key = self._key(payload)
        if key is None:
            return [Problem(seq, "public_key", "an Ed25519 key in base64", str(payload.get("public_key")))]
        self.keys.append(key)
        return []

    def _rotate(self, seq: int, payload: Mapping[str, object]) -> list[Problem]:
        key = self._key(payload)
        if key is None or not self.keys:
            return [Problem(seq, "LedgerKeyRotated", "a key, and one before it", str(payload.get("public_key")))]
        text = opened(parse_note(_note(payload)), self.keys[-1:])
        wanted = f"{_ROTATION}\n{self.name}\n{self.keys[-1]}\n{key}\n"
        self.keys.append(key)
        return [] if text == wanted else [Problem(seq, "LedgerKeyRotated", wanted, text)]

    def _checkpoint(self, seq: int, payload: Mapping[str, object], roots: Mapping[int, bytes]) -> list[Problem]:
        checkpoint = parse_checkpoint(opened(parse_note(_note(payload)), self.keys[-1:]))
        size = int(str(payload.get("size")))
        said = (checkpoint.origin, checkpoint.size, checkpoint.root.hex())
        recorded = (self.name, size, str(payload.get("root_hash")))
        if said != recorded:
            return [Problem(seq, "CheckpointPublished", str(recorded), str(said))]
        derived = roots.get(size)
        if size >= seq or derived != checkpoint.root:
            found = "no such size yet" if derived is None else derived.hex()
            return [Problem(seq, f"root at {size}", checkpoint.root.hex(), found)]
        self.signed = max(self.signed, size)
        return []

    def _restored(self, seq: int, payload: Mapping[str, object], roots: Mapping[int, bytes]) -> list[Problem]:
        said = (str(payload.get("from_size")), str(payload.get("root_hash")))
        meant = (str(seq - 1), roots.get(seq - 1, b"").hex())
        return [] if said == meant else [Problem(seq, "LedgerRestored", str(meant), str(said))]

    def _key(self, payload: Mapping[str, object]) -> VerifierKey | None:
        try:
            public = base64.b64decode(str(payload.get("public_key")), validate=True)
        except (binascii.Error, ValueError):
            return None
        return VerifierKey(self.name, key_id(self.name, public), public) if len(public) == _KEY_BYTES else None


class GivenCheckpoint:
    """A checkpoint that was kept elsewhere; raises UsageError if it isn't one."""

    def __init__(self, untrusted: bytes) -> None:
        self._note = parse_note(untrusted)
        self._untrusted = parse_checkpoint(self._note.untrusted_text)

    @property
    def size(self) -> int:
        """The size to take the root at."""
        return self._untrusted.size

    def judged(self, name: str, keys: list[VerifierKey], events: int, root: bytes | None) -> CheckpointVerdict:
        """How a ledger of so many events stands to it; `root` is the ledger's at the checkpoint's size."""
        verdict: Verdict = "consistent"
        if self._untrusted.origin != name:
            verdict = "other_ledger"
        elif not self._signed(keys):
            verdict = "not_signed"
        elif self.size > events:
            verdict = "truncated"
        elif root != self._untrusted.root:
            verdict = "rewritten"
        return CheckpointVerdict(verdict, self._untrusted.origin, self.size, self._untrusted.root.hex())

    def _signed(self, keys: list[VerifierKey]) -> bool:
        try:
            opened(self._note, keys)
        except ProofRefused:
            return False
        return True


SPEAKING_OF_SIZES = "'CheckpointPublished', 'LedgerRestored'"
"""Types of events, for SQL, that say a root at a size."""


def sizes_in(payloads: Iterable[bytes]) -> set[int]:
    """The sizes that such events speak of, so that one pass can take the root at each."""
    sizes = set()
    for payload in payloads:
        try:
            document = json.loads(payload)
            sizes.add(int(document["size"] if "size" in document else document["from_size"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # the row itself is reported where it stands
    return sizes


def _note(payload: Mapping[str, object]) -> bytes:
    return str(payload.get("note")).encode()
