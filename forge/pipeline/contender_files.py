"""Parses the files of a user that a task's candidates are measured against."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from forge.contenders.description import ENTRY
from forge.domain.contender import OWN_LIBRARY, OwnContender, name_of
from forge.domain.digest import sha256
from forge.domain.parsed_source import parse_source
from forge.errors import UsageError

MOST_FILES = 8
"""Largest number of contender files of a task. Chosen; each one is asked and timed in every benchmark of it."""
VERSION_DIGITS = 8
"""Number of digits of a file's digest that stand for its version."""


@dataclass(frozen=True)
class SubmittedContender:
    """A file as the user gave it."""

    stem: str
    """Name of the file without its suffix."""
    source: bytes


def parse_contenders(untrusted: Sequence[SubmittedContender]) -> tuple[OwnContender, ...]:
    """Return what a task says of each file; raise UsageError for one that no guest could call."""
    if len(untrusted) > MOST_FILES:
        raise UsageError(f"{len(untrusted)} contenders: expected at most {MOST_FILES}")
    parsed = tuple(map(_parsed, untrusted))
    names = [one.name for one in parsed]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice!r} is given twice: expected each file once")
    return parsed


def _parsed(one: SubmittedContender) -> OwnContender:
    digest = sha256(one.source)
    plain = re.sub(r"[^a-z0-9_]", "_", one.stem.lower())[:40]
    slug = plain if plain[:1].isalpha() else f"k_{plain}"
    return OwnContender(
        name=name_of(f"{OWN_LIBRARY}.{slug}", digest[:VERSION_DIGITS]),
        sha256=digest,
        entry=_entry(one),
    )


def _entry(one: SubmittedContender) -> str:
    """Return the function or class to call: `contender`, or the only one that the file defines in public."""
    try:
        tree = parse_source(one.source)
    except SyntaxError as error:
        raise UsageError(
            f"the contender {one.stem!r} isn't Python ({error}): expected a file that Python can parse"
        ) from error
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    public = [name for name in dict.fromkeys(defined) if not name.startswith("_")]
    if ENTRY in public:
        return ENTRY
    if len(public) != 1:
        found = ", ".join(public[:5]) or "none"
        raise UsageError(
            f"the contender {one.stem!r} defines {found}: expected a function {ENTRY!r}, or a single public function"
        )
    if len(public[0]) > 64 or not public[0].isascii():
        raise UsageError(f"the contender {one.stem!r} defines {public[0][:80]!r}: expected at most 64 letters")
    return public[0]
