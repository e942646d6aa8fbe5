"""The audit's view of payloads that look like earlier ones: what needn't be read to be known as canonical.

Most payloads differ from an earlier one in nothing but what strings and numbers say, and whether a payload is
canonical doesn't depend on that. So `audit_payload` reads one of each outline, not each payload.
"""

import re

from forge.ledger.audit.payload import quick_document

_PLAIN_TEXT = bytes(code if 0x20 <= code < 0x80 and code != ord("\\") else 0x20 for code in range(256))
"""Leaves a payload as it is in which every quote begins or ends a string, and every string stands as it should."""
_PLAIN_STRING = rb"[ !#-\[\]-\x7f]*"
_JSON_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""RFC 8259, section 6."""
_STRING = re.compile(rb':"[^"]*"')
_NUMBER = re.compile(rb'":(?<=\w":)' + _JSON_NUMBER + rb"(?=[,}])")
_EMPTIED = re.compile(rb'(:""|":(?<=\w":)0(?=[,}]))')
_FREE = {b':""': b':"' + _PLAIN_STRING + b'"', b'":0': b'":' + _JSON_NUMBER}
_KEPT = 1000
"""So many outlines are remembered, at most 16 KiB each; then it begins anew."""
_OFTEN = 200
"""An outline seen so often gets a pattern: to compile one takes as long as to empty some hundred payloads."""


class Outlines:
    """The outlines of payloads that were shown to be canonical; what has one of them needs no reading.

    An outline is a plain payload whose values are emptied: `{"a":"x","b":[1],"c":2}` gives `{"a":"","b":[1],"c":0}`.
    The outline of what isn't canonical isn't canonical either:

    - In plain text quotes open and close in turn. Where `_STRING` begins at an opening quote, it is one string behind
      a colon: no key, and free in what it says.
    - Where `_STRING` begins at a closing quote (of a string that ends in a colon), it swallows what stands between
      two strings and leaves them side by side, which no JSON does.
    - Where the quote of `_NUMBER` closes a key, the number is a value, and free in how it is written.
    - Where the quote of `_NUMBER` opens a string, a letter or digit stands right before it, which no JSON allows, and
      still does.
    """

    def __init__(self, *, often: int = _OFTEN) -> None:
        self._often = often
        self._seen: dict[bytes, int] = {}
        self._patterns: dict[object, re.Pattern[bytes]] = {}

    def fit(self, kind: object, payload: bytes) -> bool:
        """Whether the payload of such an event is canonical for sure; False says that a closer look is due."""
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
            if len(self._seen) == _KEPT:
                self._seen.clear()
        self._seen[outline] = times
        if times == self._often and pattern is None:
            self._patterns[kind] = _pattern(outline)
        return True


def _pattern(outline: bytes) -> re.Pattern[bytes]:
    """Matches what has this canonical outline, and nothing else."""
    pieces = _EMPTIED.split(outline)
    return re.compile(b"".join(_FREE[piece] if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)))
