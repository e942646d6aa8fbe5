"""Keeps the folder `keys/`: private keys, each readable only by its owner, and what was signed last.

What was signed last is stored here as well as in the ledger. So a ledger that was cut off, rewritten or restored from
an older copy can't be signed as if nothing had happened.
"""

import base64
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forge.errors import CheckpointRefused, UsageError
from forge.ledger.durable import fsync_folder, write_durably
from forge.ledger.failures import storage_errors
from forge.ledger.signatures.signing import PRIVATE_PREFIX, SigningKey, parse_signing_key, verifier_key

PRIVATE = 0o600
"""Mode of a file with a private key: only its owner may read it."""
FOLDER = 0o700
"""Mode of the folder of keys: only its owner may enter it."""
_SIZE = re.compile(r"[1-9][0-9]{0,18}")
"""Pattern of a checkpoint's number of events."""
_ROOT = re.compile(r"[A-Za-z0-9+/]{43}=")
"""Pattern of a checkpoint's root: 32 bytes in base64."""


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The size and root that were signed last."""

    size: int
    root: bytes
    note: str


class Keyring:
    """The keys of one log, in one folder; the folder may hold other logs' keys too."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder's lock, so that no other process signs for its logs; a crash releases it."""
        with storage_errors(self.folder):
            self._make_folder()
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def files(self) -> list[Path]:
        """Return the files with this log's private keys; the folder may hold those of other logs.

        An entry that is no regular file isn't read here. It is returned too, and refused when it is used.
        """
        mine = f"{PRIVATE_PREFIX}{self.name}+"
        return [path for path in sorted(self.folder.glob("*.key")) if not path.is_file() or _begins(path, mine)]

    def in_folder(self, folder: Path) -> "Keyring":
        """Return the keyring of the same log in another folder."""
        return Keyring(folder, self.name)

    def set_aside(self) -> None:
        """Forget what was signed last, and take every key out of use; the files stay under other names."""
        with storage_errors(self.folder):
            for key in self.files():
                key.rename(key.with_suffix(".retired"))
            if self._last_path.exists():
                self._last_path.rename(self._last_path.with_suffix(".superseded"))
            fsync_folder(self.folder)

    def make(self, seed: bytes) -> SigningKey:
        """Store a new private key; it is on disk when this returns."""
        key = SigningKey(self.name, seed)
        with storage_errors(self.folder):
            self._make_folder()
        write_durably(self._key_path(key.public), f"{key.private_text}\n".encode(), mode=PRIVATE)
        return key

    def discard(self, public: bytes) -> None:
        """Remove a private key that no ledger names, because the ledger it was made for couldn't be made."""
        with storage_errors(self.folder):
            self._key_path(public).unlink(missing_ok=True)
            fsync_folder(self.folder)

    def has(self, public: bytes) -> bool:
        """Return whether the private key of `public` is here."""
        return self._key_path(public).is_file()

    def load(self, public: bytes) -> SigningKey:
        """Return the private key of `public`; raise UsageError, or CheckpointRefused if others can read it."""
        path = self._key_path(public)
        if not path.is_file():
            raise UsageError(
                f"the private key to {verifier_key(self.name, public)} isn't in {str(self.folder)!r}. Get it from "
                "its holder (forge ledger key export there, import here), or let a new key sign from here on (forge "
                "ledger checkpoint --new-key). The missing key doesn't sign the new one, so readers must choose to "
                "trust it",
                hint="forge ledger key import --help",
            )
        with storage_errors(path):
            if path.stat().st_mode & 0o077:
                raise CheckpointRefused(
                    f"{path}: others may read this private key: run `chmod 600 {path}`, and replace the key if "
                    "others had access (forge ledger rotate-key)",
                    hint="forge ledger checkpoint",
                )
            key = parse_signing_key(path.read_text(encoding="utf-8"))
        if (key.name, key.public) != (self.name, public):
            raise UsageError(f"{path} holds another key ({key!r}): restore the right one from a copy")
        return key

    def retire(self, public: bytes) -> None:
        """Take a private key out of use; the file stays under another name until its owner deletes it."""
        self._set_out_of_use(public, ".retired")

    def set_over(self, public: bytes) -> None:
        """Take a private key out of use because another machine signs with it; the file stays under another name."""
        self._set_out_of_use(public, ".handed-over")

    def _set_out_of_use(self, public: bytes, suffix: str) -> None:
        path = self._key_path(public)
        with storage_errors(path):
            if path.exists():
                path.rename(path.with_suffix(suffix))
                fsync_folder(self.folder)

    @property
    def last(self) -> SignedHead | None:
        """Return what was signed last for this log; raise CheckpointRefused if that can't be read."""
        path = self._last_path
        with storage_errors(path):
            if not path.exists():
                return None
            note = path.read_bytes().decode(errors="replace") if path.is_file() else ""
        lines = note.split("\n")
        if len(lines) < 6 or lines[0] != self.name or not _SIZE.fullmatch(lines[1]) or not _ROOT.fullmatch(lines[2]):
            raise CheckpointRefused(
                f"{path} isn't the checkpoint that was signed last for {self.name!r}: restore it from a copy of the "
                "newest checkpoint",
                hint="forge ledger verify",
            )
        return SignedHead(int(lines[1]), base64.b64decode(lines[2]), note)

    def remember(self, note: str) -> None:
        """Store what was signed, before the note leaves this process."""
        write_durably(self._last_path, note.encode(), mode=PRIVATE)

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(mode=FOLDER)
            fsync_folder(self.folder.parent)

    def _key_path(self, public: bytes) -> Path:
        return self.folder / f"{hashlib.sha256(public).hexdigest()[:16]}.key"

    @property
    def _last_path(self) -> Path:
        return self.folder / f"{hashlib.sha256(self.name.encode()).hexdigest()[:16]}.checkpoint"


def _begins(path: Path, text: str) -> bool:
    with storage_errors(path), path.open("rb") as file:
        return file.read(len(text.encode())) == text.encode()
