"""Checks signatures: which keys the ledger names, and whether every recorded checkpoint holds.

`forge.proof` reads the notes and signatures; an independent verifier uses the same code. The signing side has its
own.
"""

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from forge.errors import ProofRefused, UsageError
from forge.ledger.audit.report import AuditProblem, CheckpointVerdict, KeyUse, Naming, Verdict
from forge.proof.note import VerifierKey, key_id, opened, parse_checkpoint, parse_note

_ROTATION = "forge.ledger.v1/rotation"
"""First line of the text that a key signs to name its successor."""
_KEY_BYTES = 32
"""Length of an Ed25519 public key in bytes (RFC 8032)."""
DECISIVE = (
    "'BenchmarkInvalidated', 'DeviceCalibrated', 'KernelDeprecated', 'KernelPromoted', 'KernelRevoked', "
    "'LedgerRestored', 'ModelMeasured', 'ReplicationRecorded', 'RunSealed'"
)
"""Types of events, as SQL, after which the signer issues a checkpoint: decisions, and measurements outside of runs,
which may be quoted. If one of them is under no checkpoint, the end of the ledger is suspect."""


class Signatures:
    """The keys in the order in which they came into force, and the recorded checkpoints compared with the roots."""

    def __init__(self, ledger_id: str, origin: str) -> None:
        self._ledger_id = ledger_id
        self.name = "".join("-" if one.isspace() or one == "+" else one for one in f"{origin}/{ledger_id}")
        self.keys: list[VerifierKey] = []
        self.uses: list[KeyUse] = []
        self.signed = 0

    def problems(
        self, seq: int, kind: str, payload: Mapping[str, object], roots: Mapping[int, bytes]
    ) -> list[AuditProblem]:
        """Return what is wrong with an event about keys or checkpoints; other events have no problems.

        `roots` maps the size of a tree to the root that was computed from the rows.
        """
        if kind == "LedgerOpened":
            return self._adopt(seq, payload, "opened") if payload.get("public_key") is not None else []
        if kind not in ("LedgerKeyAdopted", "LedgerKeyRotated", "CheckpointPublished", "LedgerRestored"):
            return []
        if payload.get("ledger_id") != self._ledger_id:
            return [AuditProblem(seq, kind, self._ledger_id, str(payload.get("ledger_id")))]
        if kind == "LedgerKeyAdopted":
            return self._adopt(seq, payload, "adopted")
        if kind == "LedgerRestored":
            return self._restored(seq, payload, roots)
        try:
            if kind == "LedgerKeyRotated":
                return self._rotate(seq, payload)
            return self._checkpoint(seq, payload, roots)
        except (UsageError, ProofRefused, ValueError) as error:
            return [AuditProblem(seq, kind, "a note signed by the key in force", str(error)[:200])]

    def vouched_for(self, key: VerifierKey, *, also: Iterable["GivenCheckpoint"]) -> int:
        """Return how many events the trusted key, or one that it leads to, signed here or in the notes `also`."""
        recorded = [self.uses[place].last or 0 for place in self._places_led_to_by(key)]
        given = [note.size for note in also if note.is_signed_by(self.signers_of(note.size, key))]
        return max([0, *recorded, *given])

    def signers_of(self, size: int, key: VerifierKey | None) -> list[VerifierKey]:
        """Return the keys that may sign the first `size` events; with `key`, that key and those it leads to.

        A key signs nothing that includes the event which names the next key: it was replaced there, and may be in
        other hands since. The first checkpoint after a rotation is signed by the next key too.
        """
        if key is not None and key not in self.keys:
            return [key]  # that the ledger doesn't name it is a problem of its own
        places = self._places_led_to_by(key)
        return [self.keys[place] for place in places if size < self._replaced_at(place)]

    def led_to_by(self, key: VerifierKey | None) -> list[VerifierKey]:
        """Return the key, and each later key that one of these named as its successor; without a key, all keys."""
        if key is not None and key not in self.keys:
            return [key]
        return [self.keys[place] for place in self._places_led_to_by(key)]

    def _places_led_to_by(self, key: VerifierKey | None) -> list[int]:
        """Return the places of these keys among those that the ledger names."""
        if key is None:
            return list(range(len(self.keys)))
        trusted = list[int]()
        for place, use in enumerate(self.uses):
            is_first = self.keys[place] == key and key not in self.keys[:place]
            if is_first or (use.how == "rotated" and place - 1 in trusted):
                trusted.append(place)
        return trusted

    def _replaced_at(self, place: int) -> float:
        """Return the event that names the key after this one; infinity for the key in force."""
        return self.uses[place + 1].seq if place + 1 < len(self.uses) else math.inf

    def _name(self, seq: int, key: VerifierKey, how: Naming) -> list[AuditProblem]:
        vouched = how != "adopted" or not self.keys
        known = key in self.keys
        self.keys.append(key)
        self.uses.append(KeyUse(str(key), seq, how, vouched, 0, None, None))
        return [AuditProblem(seq, "public_key", "a key that wasn't in force before", str(key))] if known else []

    def _adopt(self, seq: int, payload: Mapping[str, object], how: Naming) -> list[AuditProblem]:
        key = self._key(payload)
        if key is None:
            return [AuditProblem(seq, "public_key", "an Ed25519 key in base64", str(payload.get("public_key")))]
        return self._name(seq, key, how)

    def _rotate(self, seq: int, payload: Mapping[str, object]) -> list[AuditProblem]:
        key = self._key(payload)
        if key is None or not self.keys:
            return [AuditProblem(seq, "LedgerKeyRotated", "a key, and one before it", str(payload.get("public_key")))]
        text = opened(parse_note(_note(payload)), self.keys[-1:])
        wanted = f"{_ROTATION}\n{self.name}\n{self.keys[-1]}\n{key}\n"
        found = self._name(seq, key, "rotated" if text == wanted else "adopted")
        return found if text == wanted else [*found, AuditProblem(seq, "LedgerKeyRotated", wanted, text)]

    def _checkpoint(self, seq: int, payload: Mapping[str, object], roots: Mapping[int, bytes]) -> list[AuditProblem]:
        checkpoint = parse_checkpoint(opened(parse_note(_note(payload)), self.keys[-1:]))
        size = int(str(payload.get("size")))
        said = (checkpoint.origin, checkpoint.size, checkpoint.root.hex())
        recorded = (self.name, size, str(payload.get("root_hash")))
        if said != recorded:
            return [AuditProblem(seq, "CheckpointPublished", str(recorded), str(said))]
        derived = roots.get(size)
        if size >= seq or derived != checkpoint.root:
            found = "no such size yet" if derived is None else derived.hex()
            return [AuditProblem(seq, f"root at {size}", checkpoint.root.hex(), found)]
        self._count(size)
        return []

    def _count(self, size: int) -> None:
        """Record that the key in force signed the first `size` events."""
        use = self.uses[-1]
        new = size > self.signed
        first = self.signed + 1 if use.first is None and new else use.first
        last = size if new else use.last
        self.uses[-1] = replace(use, checkpoints=use.checkpoints + 1, first=first, last=last)
        self.signed = max(self.signed, size)

    def _restored(self, seq: int, payload: Mapping[str, object], roots: Mapping[int, bytes]) -> list[AuditProblem]:
        said = (str(payload.get("from_size")), str(payload.get("root_hash")))
        meant = (str(seq - 1), roots.get(seq - 1, b"").hex())
        return [] if said == meant else [AuditProblem(seq, "LedgerRestored", str(meant), str(said))]

    def _key(self, payload: Mapping[str, object]) -> VerifierKey | None:
        try:
            public = base64.b64decode(str(payload.get("public_key")), validate=True)
        except (binascii.Error, ValueError):
            return None
        return VerifierKey(self.name, key_id(self.name, public), public) if len(public) == _KEY_BYTES else None


class GivenCheckpoint:
    """A checkpoint that was kept elsewhere; the constructor raises UsageError if it can't be parsed."""

    def __init__(self, untrusted: bytes) -> None:
        self._note = parse_note(untrusted)
        self._untrusted = parse_checkpoint(self._note.untrusted_text)

    @property
    def size(self) -> int:
        """Return the number of events that the checkpoint covers."""
        return self._untrusted.size

    def judged(
        self, signatures: Signatures, key: VerifierKey | None, events: int, root: bytes | None, *, whole: bool
    ) -> CheckpointVerdict:
        """Compare the checkpoint with a ledger of `events` events whose root at the checkpoint's size is `root`.

        `key` is trusted instead of the keys that the ledger names. `whole` means that the ledger was read to its end.
        """
        keys = signatures.led_to_by(key)
        verdict: Verdict = "consistent"
        if not signatures.name or (not whole and self.size > events):
            verdict = "unreadable"
        elif self._untrusted.origin != signatures.name:
            verdict = "other_ledger"
        elif self.size > events and key is None and not self._names(keys):
            verdict = "truncated"  # the event that names its signer may be among those that were cut off
        elif not self.is_signed_by(keys):
            verdict = "not_signed"
        elif self.size > events:
            verdict = "truncated"
        elif root != self._untrusted.root:
            verdict = "rewritten"
        elif not self.is_signed_by(signatures.signers_of(self.size, key)):
            verdict = "not_signed"  # its signer had been replaced by then
        return CheckpointVerdict(verdict, self._untrusted.origin, self.size, self._untrusted.root.hex())

    def is_signed_by(self, keys: Sequence[VerifierKey]) -> bool:
        """Return whether one of the keys signed it."""
        try:
            opened(self._note, keys)
        except ProofRefused:
            return False
        return True

    def _names(self, keys: Sequence[VerifierKey]) -> bool:
        """Return whether one of its signature lines names one of the keys; the signature isn't checked."""
        known = {(key.name, key.key_id) for key in keys}
        return any((one.name, one.key_id) in known for one in self._note.signatures)


STATING_A_ROOT = "'CheckpointPublished', 'LedgerRestored'"
"""Types of events, as SQL, that state the root of the tree at a size."""


def sizes_in(payloads: Iterable[bytes]) -> set[int]:
    """Return the sizes that these payloads name, so that one pass can keep the root at each."""
    sizes = set()
    for payload in payloads:
        try:
            document = json.loads(payload)
            sizes.add(int(document["size"] if "size" in document else document["from_size"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # the check of the row reports it
    return sizes


def _note(payload: Mapping[str, object]) -> bytes:
    return str(payload.get("note")).encode()
