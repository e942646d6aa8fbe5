"""Signed notes (c2sp.org/signed-note), checkpoints in them (c2sp.org/tlog-checkpoint), and the keys that verify both.

A note's text means nothing until `opened` has checked its signature and returned it.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from forge.errors import ProofRefused, UsageError

ED25519 = b"\x01"
"""Byte of the signature type in a key and in its id (c2sp.org/signed-note)."""
KEY_BYTES = 32
"""Size of an Ed25519 public key in bytes."""
NOTE_LIMIT_BYTES = 1 << 20
"""Largest size of a note, 1 MiB: a checkpoint has a few lines."""
SIGNATURES_LIMIT = 100
"""Largest number of signatures of a note, so that checking one stays quick."""
KEY_FORM = "<name>+<8 hex digits>+<base64 of the key>, one line, as in ledger.vkey"
"""Form of a verifier key, as messages show it."""
_LINES = "expected the lines origin, size and root, as in the file checkpoint"
"""Words for the lines of a checkpoint, for messages."""
_DASH = "\u2014 "
"""Beginning of a signature's line (C2SP signed-note)."""
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
"""Pattern of a tree's number of events."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key and the name that it signs under."""

    name: str
    key_id: bytes
    """Identifier of four bytes. It is too short to rely on as a hash."""
    public: bytes

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"


@dataclass(frozen=True, slots=True)
class Signature:
    """One line under a note."""

    name: str
    key_id: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed note. Nothing in it is verified."""

    untrusted_text: str
    signatures: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's size and root at one time."""

    origin: str
    size: int
    root: bytes


def key_id(name: str, public: bytes) -> bytes:
    """Return the id of an Ed25519 key under a name."""
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public).digest()[:4]


def parse_key(untrusted_text: str) -> VerifierKey:
    """Parse a key of the form `<name>+<id>+<base64>`; raise UsageError for anything else."""
    shown = untrusted_text.strip()[:200]
    parts = untrusted_text.strip().split("+", 2)
    if len(parts) != 3 or not _name(parts[0]) or not untrusted_text.strip().isprintable():
        raise UsageError(f"{shown!r} is no verifier key: expected {KEY_FORM}")
    name, written_id, material = parts
    raw = _base64(material)
    if raw is None or len(raw) != 1 + KEY_BYTES or raw[:1] != ED25519:
        raise UsageError(f"the verifier key {shown!r} holds no Ed25519 key: expected {KEY_FORM}")
    if key_id(name, raw[1:]).hex() != written_id:
        raise UsageError(
            f"the verifier key {shown!r} was altered: its id doesn't follow from its name and bytes; ask the "
            "ledger's owner for it again"
        )
    return VerifierKey(name, key_id(name, raw[1:]), raw[1:])


def parse_note(untrusted: bytes) -> Note:
    """Parse a note; raise UsageError if it isn't one."""
    try:
        text = untrusted.decode()
    except UnicodeDecodeError as error:
        raise UsageError("the checkpoint is no signed note: expected text in UTF-8") from error
    if len(untrusted) > NOTE_LIMIT_BYTES or any(character < " " and character != "\n" for character in text):
        raise UsageError(
            f"the checkpoint is no signed note: it has {len(untrusted)} bytes, or holds control characters; expected "
            f"at most {NOTE_LIMIT_BYTES} bytes of plain text"
        )
    body, blank, lines = text.rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        raise UsageError(
            "the checkpoint is no signed note, or it was cut off: expected a text, an empty line, and signatures"
        )
    signatures = tuple(_signature(line) for line in lines[:-1].split("\n"))
    if len(signatures) > SIGNATURES_LIMIT:
        raise UsageError(f"the checkpoint has {len(signatures)} signatures: expected at most {SIGNATURES_LIMIT}")
    return Note(body + "\n", signatures)


def opened(note: Note, keys: Iterable[VerifierKey]) -> str:
    """Return the note's text if one of `keys` signed it and all their signatures hold; else raise ProofRefused."""
    known = {(key.name, key.key_id): key for key in keys}
    signed = [(known[one.name, one.key_id], one) for one in note.signatures if (one.name, one.key_id) in known]
    if not signed:
        names = ", ".join(sorted({f"{one.name}+{one.key_id.hex()}" for one in note.signatures}))
        wanted = ", ".join(f"{key.name}+{key.key_id.hex()}" for key in known.values()) or "no key"
        raise ProofRefused(
            f"the checkpoint is signed by {names}, not by the key that is trusted here: {wanted}; ask the ledger's "
            "owner which key signs it"
        )
    for key, signature in signed:
        if not _verifies(key, signature, note.untrusted_text):
            raise ProofRefused(
                f"the checkpoint's signature by {key.name}+{key.key_id.hex()} doesn't fit its text: one of them was "
                "altered; ask the ledger's owner for the checkpoint again"
            )
    return note.untrusted_text


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse a checkpoint; raise UsageError if its lines aren't origin, size and root."""
    lines = text.split("\n")
    root = _base64(lines[2]) if len(lines) >= 4 else None
    if root is None or len(root) != hashlib.sha256().digest_size or not all(lines[:-1]):
        raise UsageError(f"the signed note is no checkpoint, it begins with {lines[0][:60]!r}: {_LINES}")
    if not _SIZE.fullmatch(lines[1]):
        raise UsageError(f"the checkpoint's size is {lines[1][:40]!r}, no whole number: {_LINES}")
    return Checkpoint(lines[0], int(lines[1]), root)


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    raw = _base64(encoded)
    if not line.startswith(_DASH) or not space or not _name(name) or raw is None or len(raw) < 5:
        raise UsageError(f"the checkpoint is no signed note: expected a signature, found {line[:80]!r}")
    return Signature(name, raw[:4], raw[4:])


def _verifies(key: VerifierKey, signature: Signature, text: str) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:  # `cryptography` is optional for readers
        from forge.proof.ed25519 import verifies

        return verifies(key.public, signature.value, text.encode())
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature.value, text.encode())
    except InvalidSignature:
        return False
    return True


def _name(text: str) -> bool:
    return bool(text) and "+" not in text and not any(character.isspace() for character in text)


def _base64(text: str) -> bytes | None:
    """Decode standard base64; return None unless it is the canonical encoding."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None
