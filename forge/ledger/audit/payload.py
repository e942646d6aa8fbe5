"""The audit's view of a payload's form: whether its bytes are the one text that stands for their content.

Two readings, both by the standard library. Where decoding and encoding again gives the same text, nothing needs a
closer look. Elsewhere every number's text is kept, so that no second JSON library has to agree with the writer's
about how to print a float.
"""

import json
from json.encoder import encode_basestring

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def quick_document(payload: bytes) -> dict[str, object] | None:
    """The document, if encoding it again gives the same text; None says that a closer look is due."""
    try:
        text = payload.decode()
        document = json.loads(text)
        same = _ENCODER.encode(document) == text
    except (ValueError, RecursionError):
        return None
    return document if same and isinstance(document, dict) else None


def canonical_text(text: str) -> tuple[object, str]:
    """A document, numbers as they were written, and its canonical text; raise ValueError or RecursionError."""
    document = json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant)
    return document, _render(document)


class _Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} isn't JSON")


def _render(node: object) -> str:
    """The canonical text: keys sorted, no spaces, strings as plain as JSON allows; numbers as they were."""
    match node:
        case _Number():
            return str(node)
        case dict():
            return "{" + ",".join(f"{_quoted(key)}:{_render(node[key])}" for key in sorted(node)) + "}"
        case list():
            return "[" + ",".join(map(_render, node)) + "]"
        case _:
            return _quoted(node)


def _quoted(scalar: object) -> str:
    return encode_basestring(scalar) if isinstance(scalar, str) else json.dumps(scalar)
