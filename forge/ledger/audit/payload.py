"""Checks a payload's form: its bytes must be the one canonical text of its content.

The check has two steps, both with the standard library. If decoding and encoding again gives the same text, the
payload is canonical. Otherwise the text of every number is kept, so that the result doesn't depend on how a JSON
library prints floats.
"""

import json
from json.encoder import encode_basestring

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def quick_document(payload: bytes) -> dict[str, object] | None:
    """Return the document if encoding it again gives the same text; None if it needs the slower check."""
    try:
        text = payload.decode()
        document = json.loads(text)
        same = _ENCODER.encode(document) == text
    except (ValueError, RecursionError):
        return None
    return document if same and isinstance(document, dict) else None


def canonical_text(text: str) -> tuple[object, str]:
    """Return a document, its numbers as written, and its canonical text; raise ValueError or RecursionError."""
    document = json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant)
    return document, render(document)


class _Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} isn't JSON")


def render(node: object) -> str:
    """Return canonical text: sorted keys, no spaces, no needless escapes, numbers as they were written."""
    match node:
        case _Number():
            return str(node)
        case dict():
            return "{" + ",".join(f"{_quoted(key)}:{render(node[key])}" for key in sorted(node)) + "}"
        case list():
            return "[" + ",".join(map(render, node)) + "]"
        case _:
            return _quoted(node)


def _quoted(scalar: object) -> str:
    return encode_basestring(scalar) if isinstance(scalar, str) else json.dumps(scalar)
