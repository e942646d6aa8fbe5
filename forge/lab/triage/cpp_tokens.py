"""Splits C++ text into tokens: comments are dropped, and literals are single tokens, never mistaken for code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_SKIPPED = re.compile(r"(?:\s|\\\n|//(?:\\\n|[^\n])*|/\*(?s:.*?)(?:\*/|\Z))+")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\.?\d(?:[eEpP][+-]|'?[\w.])*")
_STRING = re.compile(r'"(?:\\(?s:.)|[^"\\\n])*"?')
_CHARACTER = re.compile(r"'(?:\\(?s:.)|[^'\\\n])*'?")
_RAW = re.compile(r'(?:u8|[uUL])?R"([^()\\\s]{0,16})\(')
_PREFIXED = re.compile(r'(?:u8|[uUL])(?=["\'])')
_SIGN = re.compile(r"::|->\*?|##|<<=?|>>=?|&&|\|\||[-+*/%^&|=!<>]=|\+\+|--|(?s:.)")
_DIRECTIVE = re.compile(r"#[ \t]*([a-z_]+)")
_HEADER = re.compile(r"[ \t]*(<[^>\n]*>|\"[^\"\n]*\")")
MOST_INDENT = 200
"""Number of white space characters before a directive, at most. Chosen; nothing else may stand before it on its line,
and a search backwards has an end."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is the literal with its quotes for strings, the path with its brackets for headers."""

    kind: Literal["word", "number", "string", "sign", "directive", "header"]
    text: str
    offset: int


def tokens(text: str) -> Iterator[Token]:
    """Yield every token of a C++ text; any text can be read."""
    at = 0
    while at < len(text):
        skipped = _SKIPPED.match(text, at)
        if skipped:
            at = skipped.end()
            continue
        found = _literal(text, at) or _directive(text, at) or _plain(text, at)
        yield found[0]
        if found[0].kind == "directive" and found[0].text in {"include", "import", "include_next", "embed"}:
            header = _HEADER.match(text, found[1])
            if header:
                yield Token("header", header[1], header.start(1))
                at = header.end()
                continue
        at = found[1]


def _literal(text: str, at: int) -> tuple[Token, int] | None:
    raw = _RAW.match(text, at)
    if raw:
        close = text.find(f'){raw[1]}"', raw.end())
        end = len(text) if close < 0 else close + len(raw[1]) + 2
        return Token("string", text[at:end], at), end
    prefixed = _PREFIXED.match(text, at)
    start = prefixed.end() if prefixed else at
    found = _STRING.match(text, start) or _CHARACTER.match(text, start)
    return (Token("string", text[at : found.end()], at), found.end()) if found else None


def _directive(text: str, at: int) -> tuple[Token, int] | None:
    found = _DIRECTIVE.match(text, at)
    if found is None or text[max(0, at - MOST_INDENT) : at].rpartition("\n")[2].strip():
        return None
    return Token("directive", found[1], at), found.end()


def _plain(text: str, at: int) -> tuple[Token, int]:
    word = _WORD.match(text, at)
    if word:
        return Token("word", word[0], at), word.end()
    number = _NUMBER.match(text, at)
    if number:
        return Token("number", number[0], at), number.end()
    sign = _SIGN.match(text, at)
    assert sign is not None  # its last alternative is any character
    return Token("sign", sign[0], at), sign.end()
