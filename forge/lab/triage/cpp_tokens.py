"""Splits C++ text into tokens: comments are dropped, and literals are single tokens, never mistaken for code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<skipped>(?:\s|\\\n|//(?:\\\n|[^\n])*|/\*(?s:.*?)(?:\*/|\Z))+)"
    r'|(?:u8|[uUL])?(?P<string>R"(?P<mark>[^()\\\s]{0,16})\((?s:.*?)(?:\)(?P=mark)"|\Z)'
    r'|"(?:\\(?s:.)|[^"\\\n])*"?'
    r"|'(?:\\(?s:.)|[^'\\\n])*'?)"
    r'|#[ \t]*(?:include_next|include|import|embed)[ \t]*(?P<header><[^>\n]*>|"[^"\n]*")'
    r"|#[ \t]*(?P<directive>[a-z_]+)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)"
    r"|(?P<sign>::|->\*?|##|<<=?|>>=?|&&|\|\||[-+*/%^&|=!<>]=|\+\+|--|(?s:.))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is the literal with its quotes for strings, the path with its brackets for headers."""

    kind: str
    """`word`, `number`, `string`, `sign`, `directive` or `header`. A header's directive has no token of its own."""
    text: str
    offset: int


def tokens(text: str) -> Iterator[Token]:
    """Yield every token of a C++ text; any text can be read."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is not None and kind != "skipped":
            yield Token(kind, match[kind], match.start(kind))
