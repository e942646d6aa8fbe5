"""Makes keys and signed notes: C2SP signed-note and tlog-checkpoint, with Ed25519.

A log's name is the origin line of its checkpoints and the name of its key: `<origin>/<ledger_id>`. The origin is the
name that a person chose. The ledger's id makes the log's name unique. A dash replaces each character that a key's
name can't hold.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from forge.errors import UsageError
from forge.proof.note import ED25519, key_id

SEED_BYTES = 32
"""Length of an Ed25519 private key in bytes (RFC 8032)."""
PRIVATE_PREFIX = "PRIVATE+KEY+"
"""Beginning of a private key's text, as golang.org/x/mod/sumdb/note writes it."""
ROTATION = "forge.ledger.v1/rotation"
"""First line of a rotation's text. No log has this name, so the text can't be taken for a checkpoint."""


def log_name(origin: str, ledger_id: str) -> str:
    """Return the origin line of a ledger's checkpoints."""
    return "".join("-" if letter.isspace() or letter == "+" else letter for letter in f"{origin}/{ledger_id}")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and the name under which it signs; its `repr` doesn't show the secret."""

    name: str
    seed: bytes

    def __repr__(self) -> str:
        return f"SigningKey({self.name!r}, id {self.key_id.hex()})"

    @property
    def public(self) -> bytes:
        """Return the public key's 32 bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()

    @property
    def key_id(self) -> bytes:
        """Return the four bytes by which a signature names its key."""
        return key_id(self.name, self.public)

    @property
    def verifier(self) -> str:
        """Return the verifier key: `<name>+<id>+<base64>`."""
        return verifier_key(self.name, self.public)

    @property
    def private_text(self) -> str:
        """Return the private key as golang.org/x/mod/sumdb/note writes it."""
        encoded = base64.b64encode(ED25519 + self.seed).decode()
        return f"{PRIVATE_PREFIX}{self.name}+{self.key_id.hex()}+{encoded}"

    def signature_line(self, text: str) -> str:
        """Return the line that signs a note's text."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        signature = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return f"\u2014 {self.name} {base64.b64encode(self.key_id + signature).decode()}\n"


def parse_signing_key(text: str) -> SigningKey:
    """Read `private_text`; raise UsageError, which never shows the text."""
    match = re.fullmatch(r"([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text.strip().removeprefix(PRIVATE_PREFIX))
    raw = base64.b64decode(match[3]) if match and len(match[3]) % 4 == 0 else b""
    if not match or not text.startswith(PRIVATE_PREFIX) or len(raw) != 1 + SEED_BYTES or raw[:1] != ED25519:
        raise UsageError(
            "this is no private key: expected one line as `forge init` writes it; restore it from a copy"
        )
    key = SigningKey(match[1], raw[1:])
    if key.key_id.hex() != match[2]:
        raise UsageError("this private key was altered: its id doesn't follow from its name and bytes; restore it")
    return key


def verifier_key(name: str, public: bytes) -> str:
    """Return a public key with its name."""
    return f"{name}+{key_id(name, public).hex()}+{base64.b64encode(ED25519 + public).decode()}"


def signed_note(text: str, keys: Sequence[SigningKey]) -> str:
    """Return the text with one signature of each key, in their order."""
    if not text.endswith("\n") or any(letter < " " and letter != "\n" for letter in text):
        raise ValueError(f"a note's text ends in a newline and holds no control characters: {text!r}")
    return text + "\n" + "".join(key.signature_line(text) for key in keys)


def checkpoint_text(name: str, size: int, root: bytes) -> str:
    """Return origin, size and root, which a checkpoint signs.

    `size` is the number of events.
    """
    return f"{name}\n{size}\n{base64.b64encode(root).decode()}\n"


def rotation_text(name: str, old: str, new: str) -> str:
    """Return the text that the old key signs to name its successor."""
    return f"{ROTATION}\n{name}\n{old}\n{new}\n"
