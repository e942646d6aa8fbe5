"""Finds the stored bytes that an event needs: the blobs that it names, and those that these name."""

from collections.abc import Iterator

import orjson

from forge.domain.digest import Digest
from forge.ledger.blobs import BlobStore

READ_LIMIT_BYTES = 1 << 20
"""Largest blob in bytes that is searched for names of other blobs. A larger one is data."""
_SUFFIX = "sha256"
"""End of the name of each field that holds a digest."""
_PREFIX = "sha256:"
"""Beginning of a piece of evidence that names a blob, whatever its field is called."""


class NamedBlobs:
    """The stored blobs that a sequence of events needs."""

    def __init__(self, blobs: BlobStore) -> None:
        self.digests: set[Digest] = set()
        self._blobs = blobs

    def add(self, payload: str) -> None:
        """Add the blobs that a payload names, and those that these name; raise BlobCorrupt if one is damaged."""
        pending = list(_named(orjson.loads(payload)))
        while pending:
            digest = pending.pop()
            if digest in self.digests or not self._blobs.has(digest):
                continue
            self.digests.add(digest)
            pending += _named(self._document(digest))

    def _document(self, digest: Digest) -> object:
        if self._blobs.path(digest).stat().st_size > READ_LIMIT_BYTES:
            return None
        try:
            return orjson.loads(self._blobs.get(digest))
        except orjson.JSONDecodeError:
            return None


def _named(node: object, name: str = "") -> Iterator[Digest]:
    """Yield digests in fields called `*sha256`, and those after `sha256:`."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _named(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _named(value, name)
    elif isinstance(node, str) and (name.endswith(_SUFFIX) or node.startswith(_PREFIX)):
        digest = node.removeprefix(_PREFIX)
        if len(digest) == 64 and not set(digest) - set("0123456789abcdef"):
            yield digest
