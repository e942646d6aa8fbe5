"""Recognises payloads that have the form of an earlier one, so that they needn't be parsed to be known as canonical.

Most payloads differ from an earlier one only in the content of strings and in numbers. Whether a payload is canonical
doesn't depend on these. So `payload` parses one payload of each outline instead of every payload.
"""

import re

from forge.ledger.audit.payload import quick_document

_PLAIN_TEXT = bytes(code if 0x20 <= code < 0x80 and code != ord("\\") else 0x20 for code in range(256))
"""Translation table that changes nothing in a payload of plain text, where each quote begins or ends a string."""
_PLAIN_STRING = rb"[ !#-\[\]-\x7f]*"
"""Pattern of a JSON string's content without escapes."""
_JSON_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""Pattern of a JSON number (RFC 8259, section 6)."""
_STRING = re.compile(rb':"[^"]*"')
"""Pattern of a string value after a key's colon, in plain text."""
_NUMBER = re.compile(rb'":(?<=\w":)' + _JSON_NUMBER + rb"(?=[,}])")
"""Pattern of a number value after a key and its colon."""
_EMPTIED = re.compile(rb'(:""|":(?<=\w":)0(?=[,}]))')
"""Pattern of an emptied value in an outline."""
_VALUE_PATTERNS = {b':""': b':"' + _PLAIN_STRING + b'"', b'":0': b'":' + _JSON_NUMBER}
"""Emptied value -> pattern of the values that it stands for."""
_OUTLINE_LIMIT = 1000
"""Number of outlines that are remembered, at most 16 KiB each. Chosen; they take 16 MiB at most. When it is reached,
all are forgotten."""
_PATTERN_AFTER = 200
"""Number of payloads after which an outline gets a compiled pattern. Compiling takes as long as emptying some hundred
payloads."""


class Outlines:
    """The outlines of payloads that are known to be canonical; a payload with such an outline needn't be parsed.

    An outline is a plain payload whose values are emptied: `{"a":"x","b":[1],"c":2}` gives `{"a":"","b":[1],"c":0}`.
    The outline of a payload that isn't canonical isn't canonical either:

    - In plain text, quotes open and close in turn. Where `_STRING` begins at an opening quote, it matches one string
      after a colon. That is a value, not a key, and its content is free.
    - Where `_STRING` begins at a closing quote (of a string that ends in a colon), it removes the text between two
      strings. They then stand side by side, which JSON doesn't allow.
    - Where the quote of `_NUMBER` closes a key, the number is a value, and its digits are free.
    - Where the quote of `_NUMBER` opens a string, a letter or digit stands right before it. JSON doesn't allow that,
      and the outline keeps it.
    """

    def __init__(self, *, pattern_after: int = _PATTERN_AFTER) -> None:
        self._pattern_after = pattern_after
        self._seen: dict[bytes, int] = {}
        self._patterns: dict[object, re.Pattern[bytes]] = {}

    def fit(self, kind: object, payload: bytes) -> bool:
        """Return True if the payload is certainly canonical; False if it must be checked in full."""
        pattern = self._patterns.get(kind)
        if pattern is not None and pattern.fullmatch(payload):
            return True
        if payload.translate(_PLAIN_TEXT) != payload:
            return quick_document(payload) is not None
        outline = _STRING.sub(b':""', payload)
        if outline not in self._seen:
            outline = _NUMBER.sub(b'":0', outline)
        times = self._seen.get(outline, 0) + 1
        if times == 1:
            if quick_document(outline) is None:
                return False
            if len(self._seen) == _OUTLINE_LIMIT:
                self._seen.clear()
        self._seen[outline] = times
        if times == self._pattern_after and pattern is None:
            self._patterns[kind] = _pattern(outline)
        return True


def _pattern(outline: bytes) -> re.Pattern[bytes]:
    """Compile a pattern that matches exactly the payloads with this outline."""
    pieces = _EMPTIED.split(outline)
    return re.compile(
        b"".join(_VALUE_PATTERNS[piece] if place % 2 else re.escape(piece) for place, piece in enumerate(pieces))
    )
