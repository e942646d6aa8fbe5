"""Finds what CPython parses in time that grows with the square of its length, before it is parsed.

Fields of one f-string: each looks through the whole string again (Python 3.11). Marks in one name: they are sorted by
insertion (PEP 3131 has names normalised). Both are counted here in one pass over the text.
"""

import re

FIELDS = 1000
"""Opening braces of one f-string: with as many in 512 KiB, the parser takes a quarter of a second."""
SIGNS = 1000
"""Signs beyond ASCII in a row, in code or an f-string: far beyond any name, and sorted in a second in 512 KiB."""
_QUOTED = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|)'
    r"|'''(?:[^\\']|\\.|'(?!''))*+(?:'''|)"
    r'|"(?:[^\\"\n]|\\.)*+"?'
    r"|'(?:[^\\'\n]|\\.)*+'?",
    re.DOTALL,
)
"""A comment or a string, which needn't end: what doesn't is no Python."""
_BEYOND_ASCII = re.compile(rf"[^\x00-\x7f]{{{SIGNS + 1}}}")


def too_long(source: str) -> str:
    """What in a source is longer than is parsed, with its line; empty if nothing is."""
    end = 0
    for quoted in _QUOTED.finditer(source):
        start, read = quoted.start(), end
        formatted = source[start] != "#" and "f" in source[max(read, start - 2) : start].lower()
        end = quoted.end()
        if formatted and (fields := source.count("{", start, end)) > FIELDS:
            return f"line {_line(source, start)}: an f-string with {fields} fields, expected at most {FIELDS}"
        if found := _BEYOND_ASCII.search(source, read, end if formatted else start):
            return _a_row(source, found.start())
    found = _BEYOND_ASCII.search(source, end)
    return _a_row(source, found.start()) if found else ""


def _a_row(source: str, at: int) -> str:
    return f"line {_line(source, at)}: more than {SIGNS} signs beyond ASCII in a row, outside of a plain string"


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1
