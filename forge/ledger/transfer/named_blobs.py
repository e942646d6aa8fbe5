"""Finds the blobs that events name, also through stored documents that name others."""

from collections.abc import Iterable, Iterator

import orjson

from forge.domain.digest import Digest
from forge.ledger.blobs import BlobStore

READ_LIMIT_BYTES = 1 << 20
"""Largest blob in bytes that is searched for names of other blobs. A larger one holds data
and names none."""
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
        pending = list(_names_in(payload.encode()))
        while pending:
            digest = pending.pop()
            if digest in self.digests or not self._blobs.has(digest):
                continue
            self.digests.add(digest)
            pending += self._names_of(digest)

    def _names_of(self, digest: Digest) -> tuple[Digest, ...]:
        if self._blobs.path(digest).stat().st_size > READ_LIMIT_BYTES:
            return ()
        return _names_in(self._blobs.get(digest))


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


class ProvidedBlobs:
    """The blobs in a bundle, of which each must be named by one of its events or by another of its blobs."""

    def __init__(self) -> None:
        self.digests: set[Digest] = set()
        self._named: set[Digest] = set()
        self._inside: dict[Digest, tuple[Digest, ...]] = {}
        """Blob -> the blobs that it names."""

    def name_in(self, payload: str) -> None:
        """Add the digests of the blobs that an event's payload names."""
        self._named.update(_names_in(payload.encode()))

    def take(self, digest: Digest, chunks: Iterable[bytes]) -> None:
        """Read a blob to its end; a large one is data and names nothing."""
        content = bytearray()
        for chunk in chunks:
            if len(content) <= READ_LIMIT_BYTES:
                content += chunk
        self.digests.add(digest)
        if len(content) <= READ_LIMIT_BYTES:
            self._inside[digest] = _names_in(bytes(content))

    def unnamed(self) -> Digest | None:
        """Return a blob that nothing names, the first by digest; None if there is none."""
        pending, reached = list(self._named & self.digests), set[Digest]()
        while pending:
            digest = pending.pop()
            if digest not in reached:
                reached.add(digest)
                pending += [one for one in self._inside.get(digest, ()) if one in self.digests]
        return min(self.digests - reached, default=None)


def _names_in(untrusted: bytes) -> tuple[Digest, ...]:
    """Return the digests that a document names; none if it is nested deeper than Forge writes any."""
    try:
        return tuple(_named(_document(untrusted)))
    except RecursionError:
        return ()


def _document(content: bytes) -> object:
    """Return the content as JSON; None if it is something else."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
