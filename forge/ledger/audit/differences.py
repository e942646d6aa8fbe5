"""Compares a recorded document with the derived one, field by field; each field is named by its path."""

import math
from collections.abc import Iterator
from typing import Any

from forge.ledger.audit.samples import Ratio

Difference = tuple[str, str, str]
"""A field's path, the derived value, the value that was found."""

_ROUNDING = 1e-9
"""Largest accepted relative difference: the order of additions may cause it. The largest seen is 1e-15."""
_OLD_T_ROUNDING = 2e-4
"""Largest accepted relative difference of an interval's width. The first events used a table of t with three
decimals."""


def differences(expected: Any, found: Any, path: str) -> Iterator[Difference]:  # Any: JSON on both sides
    """Yield the fields in which `found` differs from `expected`; `expected` may lack fields of `found`."""
    match expected:
        case Ratio():
            yield from _ratio_differences(expected, found, path)
        case dict():
            for name, value in expected.items():
                given = found.get(name) if isinstance(found, dict) else found
                yield from differences(value, given, f"{path}.{name}" if path else name)
        case list() if isinstance(found, list) and len(found) == len(expected):
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                yield from differences(one, other, f"{path}[{place}]")
        case float() | int() if _is_number(expected) and _is_number(found):
            if not math.isclose(expected, found, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
                yield path, repr(expected), repr(found)
        case _:
            if type(expected) is not type(found) or expected != found:
                yield path, repr(expected), repr(found)


def _ratio_differences(expected: Ratio, found: Any, path: str) -> Iterator[Difference]:  # Any: JSON
    ends = [_positive(found, name) for name in ("ratio", "low", "high")]
    mean, width = expected.mean, math.log(ends[2] / ends[1])
    half = min(expected.halves, key=lambda one: abs(one - width / 2))
    for name, log, value in zip(("ratio", "low", "high"), (mean, mean - half, mean + half), ends, strict=True):
        allowed = _ROUNDING + (0 if name == "ratio" else _OLD_T_ROUNDING * half)
        if abs(math.log(value) - log) > allowed:
            yield f"{path}.{name}", repr(math.exp(log)), repr(value)


def _positive(found: Any, name: str) -> float:  # Any: JSON
    """Return a ratio's field; raise ValueError if it isn't a positive number."""
    value = found[name]
    if not _is_number(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}, expected a ratio above 0")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
