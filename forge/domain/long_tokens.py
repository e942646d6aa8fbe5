"""Finds tokens that CPython parses in time that grows with the square of their length, before they are parsed.

For each field of an f-string Python 3.11 reads the whole string again. The marks in a name are sorted by insertion,
since PEP 3131 normalises names. Both are counted here in one pass over the text.
"""

import re

MOST_FIELDS = 1000
"""Number of opening braces in one f-string, at most; with as many in 512 KiB, the parser takes a quarter of a
second."""
MOST_SIGNS = 1000
"""Number of signs beyond ASCII in a row, in code or an f-string, at most. Names are much shorter, and 512 KiB with as
many are sorted in a second."""
_QUOTED = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|)'
    r"|'''(?:[^\\']|\\.|'(?!''))*+(?:'''|)"
    r'|"(?:[^\\"\n]|\\.)*+"?'
    r"|'(?:[^\\'\n]|\\.)*+'?",
    re.DOTALL,
)
"""Pattern of a comment or a string, also without an end: such a text is no Python."""
_BEYOND_ASCII = re.compile(rf"[^\x00-\x7f]{{{MOST_SIGNS + 1}}}")


def too_long(source: str) -> str:
    """Return which token is too long, with its line; empty if none is."""
    end = 0
    for quoted in _QUOTED.finditer(source):
        start, read = quoted.start(), end
        formatted = source[start] != "#" and "f" in source[max(read, start - 2) : start].lower()
        end = quoted.end()
        if formatted and (fields := source.count("{", start, end)) > MOST_FIELDS:
            return f"line {_line(source, start)}: an f-string with {fields} fields, expected at most {MOST_FIELDS}"
        if found := _BEYOND_ASCII.search(source, read, end if formatted else start):
            return _row_message(source, found.start())
    found = _BEYOND_ASCII.search(source, end)
    return _row_message(source, found.start()) if found else ""


def _row_message(source: str, at: int) -> str:
    return f"line {_line(source, at)}: more than {MOST_SIGNS} signs beyond ASCII in a row, outside of a plain string"


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1
