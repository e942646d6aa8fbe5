"""Checks a `.tlog-proof` file (c2sp.org/tlog-proof) of one kernel's promotion against an artifact and a key.

Its `extra` line holds the data behind the log's entry: the event's envelope, its payload, and the listing of the
built files. None of it is trusted. The envelope must hash to the log's leaf, the payload to the digest in the
envelope, and the listing to the digest in the payload.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from forge.errors import ProofRefused, UsageError
from forge.proof.note import Checkpoint, Note, VerifierKey, opened, parse_checkpoint, parse_note
from forge.proof.tree import HASH_BYTES, included, leaf_hash

HEADER = "c2sp.org/tlog-proof@v1"
PROOF_LIMIT_BYTES = 1 << 20
"""Largest size of a proof: an event has at most 16 KiB, so this is far more than any proof needs."""
PATH_LIMIT = 64
"""Largest number of hashes in a path: a tree has at most 2^63 leaves."""
SOURCE = "kernel.py"
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})")
"""Pattern of the line with the event's index in the tree, which begins at 0."""
_UNUSABLE = "expected a .tlog-proof file as `forge ledger prove` writes it"
"""Words for what a proof's file is, for messages."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A parsed proof. Nothing in it is verified."""

    index: int
    path: tuple[bytes, ...]
    note: Note
    untrusted_envelope: str
    untrusted_payload: str
    untrusted_listing: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """The recorded facts of a promotion that the artifact matches."""

    kernel_id: str
    file: str
    """Name of the kernel's file that the artifact is."""
    seq: int
    event_hash: str
    recorded_at: str
    origin: str
    size: int
    root: str


def check_proof(untrusted: bytes, artifact: bytes, key: VerifierKey, *, kernel_id: str | None) -> Checked:
    """Check a proof about `artifact`; raise ProofRefused if it doesn't hold, UsageError if it isn't a proof."""
    proof = parse_proof(untrusted)
    checkpoint = _trusted_checkpoint(proof, key)
    leaf = leaf_hash(proof.untrusted_envelope.encode())
    if not included(leaf, proof.index, checkpoint.size, proof.path, checkpoint.root):
        raise ProofRefused(
            f"the proof doesn't lead from its event {proof.index + 1} to the checkpoint's root at "
            f"{checkpoint.size} events: the event or the proof was altered; get it again"
        )
    envelope, payload = _event(proof)
    if kernel_id is not None and payload["kernel_id"] != kernel_id:
        raise ProofRefused(
            f"the proof is about kernel {payload['kernel_id']!r}: expected {kernel_id!r}; ask for forge ledger prove"
        )
    digest = hashlib.sha256(artifact).hexdigest()
    files = dict(_files(proof, payload))
    if digest not in files:
        known = ", ".join(f"{name} {known_digest[:12]}" for known_digest, name in files.items())
        raise ProofRefused(
            f"the artifact's digest is {digest}: kernel {payload['kernel_id']!r} was promoted with {known}; "
            "expected one of these files"
        )
    return Checked(
        kernel_id=str(payload["kernel_id"]),
        file=files[digest],
        seq=proof.index + 1,
        event_hash=leaf.hex(),
        recorded_at=str(envelope["recorded_at"]),
        origin=checkpoint.origin,
        size=checkpoint.size,
        root=checkpoint.root.hex(),
    )


def parse_proof(untrusted: bytes) -> Proof:
    """Parse a proof; raise UsageError if it isn't one, or is cut off."""
    if len(untrusted) > PROOF_LIMIT_BYTES:
        raise UsageError(f"this proof has {len(untrusted)} bytes: {_UNUSABLE}")
    head, blank, note = untrusted.partition(b"\n\n")
    try:
        lines = head.decode().split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"this is no proof, it isn't UTF-8: {_UNUSABLE}") from error
    if lines[0] != HEADER:
        raise UsageError(f"this is no proof, it begins with {lines[0][:60]!r}: {_UNUSABLE}")
    if not blank or len(lines) < 3 or not lines[1].startswith("extra "):
        raise UsageError(f"this proof is cut off, or says nothing of its event: {_UNUSABLE}")
    index = _INDEX.fullmatch(lines[2])
    if not index or len(lines) > 3 + PATH_LIMIT:
        raise UsageError(f"this proof's index is {lines[2][:40]!r}: {_UNUSABLE}")
    path = tuple(_decoded(line) for line in lines[3:])
    if any(len(step) != HASH_BYTES for step in path):
        raise UsageError(f"a step of this proof isn't {HASH_BYTES} bytes long: {_UNUSABLE}")
    envelope, payload, listing = _extra(lines[1].removeprefix("extra "))
    return Proof(int(index[1]), path, parse_note(note), envelope, payload, listing)


def _trusted_checkpoint(proof: Proof, key: VerifierKey) -> Checkpoint:
    origin = proof.note.untrusted_text.split("\n", 1)[0]
    if origin != key.name:
        raise ProofRefused(f"the checkpoint is of the log {origin[:200]!r}: expected {key.name!r}, as the key says")
    return parse_checkpoint(opened(proof.note, [key]))


def _event(proof: Proof) -> tuple[dict[str, object], dict[str, object]]:
    """Return the envelope and payload of a promotion. The envelope is already known to be the log's entry."""
    envelope, payload = _object(proof.untrusted_envelope), _object(proof.untrusted_payload)
    digest = hashlib.sha256(proof.untrusted_payload.encode()).hexdigest()
    if envelope.get("payload_sha256") != digest:
        raise ProofRefused(
            f"the payload isn't the one that event {proof.index + 1} names: it was altered; get the proof again"
        )
    if envelope.get("seq") != proof.index + 1 or envelope.get("type") != "KernelPromoted":
        raise ProofRefused(
            f"entry {proof.index} is event {envelope.get('seq')} of type {envelope.get('type')!r}: "
            "expected the promotion of a kernel"
        )
    if not isinstance(payload.get("kernel_id"), str) or not isinstance(payload.get("files"), list):
        raise ProofRefused(f"event {proof.index + 1} names no kernel or no files: expected both; it was altered")
    return envelope, payload


def _files(proof: Proof, payload: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield digest and name of each file that runs: the source, and the files built from it."""
    yield from ((digest, name) for digest, name in _named(payload) if name == SOURCE)
    if proof.untrusted_listing is not None:
        if hashlib.sha256(proof.untrusted_listing.encode()).hexdigest() != payload.get("artifact_sha256"):
            raise ProofRefused(
                "the listing of the built files isn't the one that the event names; get the proof again"
            )
        yield from _named(_object(proof.untrusted_listing))


def _named(document: dict[str, object]) -> Iterator[tuple[str, str]]:
    files = document.get("files")
    for file in files if isinstance(files, list) else []:
        if isinstance(file, dict) and isinstance(file.get("sha256"), str):
            yield file["sha256"], str(file.get("path"))


def _object(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProofRefused("the event in the proof isn't JSON: expected an object; get the proof again") from error
    if not isinstance(document, dict):
        raise ProofRefused("the event in the proof isn't a JSON object: expected one; get the proof again")
    return document


def _extra(encoded: str) -> tuple[str, str, str | None]:
    try:
        document = json.loads(_decoded(encoded))
        envelope, payload, listing = (document.get(name) for name in ("envelope", "payload", "listing"))
        for text in (envelope, payload, listing or ""):
            text.encode()  # raises for a lone surrogate, which JSON allows but text doesn't
    except (ValueError, RecursionError, AttributeError) as error:
        raise UsageError(f"this proof's extra line can't be read: {_UNUSABLE}") from error
    if not isinstance(envelope, str) or not isinstance(payload, str) or not isinstance(listing, str | None):
        raise UsageError(f"this proof's extra line lacks the envelope or the payload: {_UNUSABLE}")
    return envelope, payload, listing


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"{text[:40]!r} in this proof isn't base64: {_UNUSABLE}") from error
