"""Finds the lines of a source that a written value comes from, where the value was wrong.

It reads text line by line, C++ and Python alike, and understands neither. So it may name a line too many. A hint is
no finding, and no verdict uses it.
"""

import re

MOST_LINES = 8
"""Number of lines that are named, at most. Chosen: with the written one they stay on a screen."""
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_ASSIGNED = re.compile(
    r"(?<![\w.>])(?P<name>[A-Za-z_]\w*+)\s*+(?:\[[^\]\[]*+\])?+\s*+(?:[-+*/|&^%@]|//|<<|>>)?=(?![=])\s*(?P<value>[^;]*)"
)
"""Pattern of an assignment. Its repetitions are possessive, so that it never backtracks into them: the time for a
hostile line grows with its length alone."""
_STORED = re.compile(r"\btl\.(?:store|atomic_\w+)\([^,]{0,300}+,\s*(?P<value>.*)")
"""A store in Triton. Its address has at most 300 characters, so that many calls without a comma take no longer."""
_RETURNED = re.compile(r"\breturn\s+(?P<value>[^;]*)")
_AROUND = re.compile(r"\s*(?:for|while|if|elif|else|with)\b")
_COMMENT = re.compile(r"//.*|#.*")
_HEADER = re.compile(r"[^\s#/})]")
"""First character of a line with which a function begins, in its first column."""


def comes_from(text: str, line: int) -> tuple[int, ...]:
    """Return the lines of the same function before `line` that its value is computed from, first ones first.

    The loops and conditions around these lines are among them.
    """
    lines = text.splitlines()
    wanted = {name for value in _values(lines[line - 1]) for name in _NAME.findall(value)}
    inside, found = _indentation(lines[line - 1]), list[int]()
    for place in range(line - 1, 0, -1):
        source = _COMMENT.sub("", lines[place - 1])
        if _HEADER.match(source):
            break
        given = [one["value"] for one in _ASSIGNED.finditer(source) if one["name"] in wanted]
        if _AROUND.match(source) and _indentation(source) < inside:
            given.append(source)
        if given:
            found.append(place)
            inside = _indentation(source)
            wanted.update(name for value in given for name in _NAME.findall(value))
    return tuple(sorted(found[:MOST_LINES]))


def _indentation(source: str) -> int:
    return len(source) - len(source.lstrip())


def _values(source: str) -> list[str]:
    """Return what a line writes, stores or returns; in Triton a store's value follows its address."""
    plain = _COMMENT.sub("", source)
    stored = [*_STORED.finditer(plain), *_RETURNED.finditer(plain)]
    return [one["value"] for one in stored or _ASSIGNED.finditer(plain)]
