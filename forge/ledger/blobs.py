"""Stores content-addressed bytes at `cas/<first two digits>/<sha256>`, before the event that names them.

A crash may leave bytes that no event names. It never leaves an event whose bytes are missing.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forge.errors import BlobCorrupt
from forge.ledger.durable import fsync_folder, make_folder, side_by_side, write_durably, written_aside
from forge.ledger.failures import storage_errors

if TYPE_CHECKING:
    from forge.domain.digest import Digest

DIGEST = re.compile(r"[0-9a-f]{64}")
"""Pattern of a SHA-256 digest in hex."""
READ_ONLY = 0o444
"""Mode of a stored blob: its content never changes."""


class BlobStore:
    """The blobs under one folder. Many processes may use it at once, since a name fixes its content."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, digest: "Digest") -> Path:
        """Return the path of the blob `digest`, whether it exists or not.

        Raises BlobCorrupt for text that is no SHA-256 in hex.
        """
        if not DIGEST.fullmatch(digest):
            raise BlobCorrupt(f"{digest!r} names no blob: expected 64 lower-case hex digits")
        return self.root / digest[:2] / digest

    def has(self, digest: "Digest") -> bool:
        """Return whether a file with this name exists; `get` also checks its content."""
        return os.path.lexists(self.path(digest))

    def put(self, content: bytes) -> "Digest":
        """Store `content` and return its digest; it is on disk when this returns, or StorageFailed is raised.

        If a file of that name exists, it is read back, and replaced if its content has another digest.
        """
        digest = hashlib.sha256(content).hexdigest()
        target = self.path(digest)
        if self._stored(target) == content:
            with storage_errors(target):  # another process may have been killed before its own fsync
                fsync_folder(target.parent)
                fsync_folder(self.root)
        else:
            make_folder(target.parent)
            write_durably(target, content, mode=READ_ONLY)
        return digest

    def put_all(self, contents: Iterable[bytes]) -> None:
        """Store several blobs, as `put` does."""
        side_by_side([partial(self.put, content) for content in contents])

    def put_stream(self, digest: "Digest", chunks: Iterable[bytes]) -> None:
        """Store bytes that come in `chunks`, as `put` does; raise BlobCorrupt if their digest isn't `digest`."""
        target = self.path(digest)
        make_folder(target.parent)
        with written_aside(target, mode=READ_ONLY) as stream:
            hashed = hashlib.sha256()
            for chunk in chunks:
                hashed.update(chunk)
                stream.write(chunk)
            if hashed.hexdigest() != digest:
                raise BlobCorrupt(
                    f"expected bytes with the digest {digest}, got {hashed.hexdigest()}: nothing was stored"
                )

    def get(self, digest: "Digest") -> bytes:
        """Return the bytes of `digest`, hashed again; raise BlobCorrupt if they are missing or different."""
        content = self._stored(self.path(digest))
        if content is None:
            raise BlobCorrupt(
                f"blob {digest} is missing from {str(self.root)!r}: restore it from a backup",
                hint="forge ledger verify",
            )
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise BlobCorrupt(
                f"blob {digest} has content {found}: it was edited or damaged; restore it from a backup",
                hint="forge ledger verify",
            )
        return content

    def _stored(self, target: Path) -> bytes | None:
        """Return the bytes at `target`; None if it is no regular file. A symbolic link isn't followed."""
        with storage_errors(target):
            if not os.path.lexists(target) or not stat.S_ISREG(os.lstat(target).st_mode):
                return None
            descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                return stream.read()
