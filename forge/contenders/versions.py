"""Compares the version of an installed package with the range that a description names."""

import re
from typing import Annotated

from pydantic import StringConstraints

Versions = Annotated[
    str, StringConstraints(pattern=r"^(>=|<=|==|!=|>|<)[0-9]+(\.[0-9]+)*(,(>=|<=|==|!=|>|<)[0-9]+(\.[0-9]+)*)*$")
]
"""Range of versions: comparisons with commas between them, all of which must hold, such as `>=0.5,<1`."""
_RELEASE = re.compile(r"(?:[0-9]++!)?([0-9]++(?:\.[0-9]++)*+)(.*)")
_COMPARISON = re.compile(r"(>=|<=|==|!=|>|<)([0-9.]+)")
_BEFORE = re.compile(r"[._-]?(a|b|c|rc|alpha|beta|pre|preview|dev)")
"""Suffix of a version that comes before its release (PEP 440)."""


def within(version: str, versions: str) -> bool:
    """Return whether a version lies in a range; a version that can't be read lies in none."""
    found = _key(version)
    if found is None:
        return False
    return all(_holds(found, sign, _padded(named)) for sign, named in _COMPARISON.findall(versions))


def _key(version: str) -> tuple[tuple[int, ...], int] | None:
    """Return a version's numbers, and -1 if it comes before the release of these numbers."""
    matched = _RELEASE.fullmatch(version.strip())
    if matched is None:
        return None
    return _padded(matched[1]), -1 if _BEFORE.match(matched[2].lower()) else 0


def _padded(numbers: str) -> tuple[int, ...]:
    """Return the numbers without zeros at the end, so that 1.0 equals 1."""
    listed = [int(number) for number in numbers.split(".") if number]
    while listed and listed[-1] == 0:
        listed.pop()
    return tuple(listed)


def _holds(found: tuple[tuple[int, ...], int], sign: str, named: tuple[int, ...]) -> bool:
    wanted = (named, 0)
    match sign:
        case ">=":
            return found >= wanted
        case ">":
            return found > wanted
        case "<=":
            return found <= wanted
        case "<":
            # a release candidate of the limit isn't below it: 1.0rc1 has what 1.0 has
            return found[0] < named
        case "==":
            return found == wanted
        case "!=":
            return found != wanted
        case _:
            return False
