"""Reads the stored documents that events name."""

import hashlib
import json
from pathlib import Path

from forge.errors import UsageError
from forge.ledger.audit.samples import Document
from forge.proof.files import read


def stored_document(runs: Path, digest: str) -> Document | None:
    """Return the document stored under a digest; None if its bytes are missing or have another digest."""
    content = stored_bytes(runs, digest)
    if content is None:
        return None
    document = json.loads(content)
    if not isinstance(document, dict):
        raise TypeError(f"blob {digest} is {type(document).__name__}, expected an object")
    return document


def stored_bytes(runs: Path, digest: str) -> bytes | None:
    """Return the bytes stored under a digest; None if they are missing or have another digest."""
    try:
        content = read(runs / "cas" / digest[:2] / digest)
    except UsageError:  # also for a pipe, which would hold the check up
        return None
    return content if hashlib.sha256(content).hexdigest() == digest else None
