"""Where a recorded document differs from what was derived, field by field, each named by its path."""

import math
from collections.abc import Iterator
from typing import Any

from forge.ledger.audit.samples import Ratio

Difference = tuple[str, str, str]
"""A field's path, what was derived, what was found."""

_ROUNDING = 1e-9
"""Relative difference that the order of additions may cause; the largest seen is 1e-15."""
_T_DIGITS = 2e-4
"""Relative difference of an interval's width: the first events took t from a table of three decimals."""


def differences(expected: Any, found: Any, path: str) -> Iterator[Difference]:  # Any: JSON on both sides
    """What `found` has otherwise than `expected`, which may leave fields out but not values."""
    match expected:
        case Ratio():
            yield from _of_ratio(expected, found, path)
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


def _of_ratio(expected: Ratio, found: Any, path: str) -> Iterator[Difference]:  # Any: JSON
    ends = [_positive(found, name) for name in ("ratio", "low", "high")]
    mean, width = expected.mean, math.log(ends[2] / ends[1])
    half = min(expected.halves, key=lambda one: abs(one - width / 2))
    for name, log, value in zip(("ratio", "low", "high"), (mean, mean - half, mean + half), ends, strict=True):
        allowed = _ROUNDING + (0 if name == "ratio" else _T_DIGITS * half)
        if abs(math.log(value) - log) > allowed:
            yield f"{path}.{name}", repr(math.exp(log)), repr(value)


def _positive(found: Any, name: str) -> float:  # Any: JSON
    """A ratio's field; raise ValueError if it isn't a ratio."""
    value = found[name]
    if not _is_number(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}, expected a ratio above 0")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
