"""The canonical bytes of a document, and the digest of bytes. It loads no models."""

import hashlib
from collections.abc import Mapping

import orjson


def canonical_document(document: Mapping[str, object] | list[object]) -> bytes:
    """Render a document as the one JSON text that stands for it: sorted keys, no spaces, UTF-8."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in lower-case hex."""
    return hashlib.sha256(content).hexdigest()
