"""What a sentence says about speed: one figure, and how a match of a pattern becomes one."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from forge.claims.number import WORDS, decimals_of, value_of

Kind = Literal["ratio", "compared", "floor_share", "time", "rate", "absolute", "unreadable"]
"""A ratio; a comparison without a number; a share of the floor; a time; a rate; what no event can bear out; or what
speaks of speed in words that no pattern reads."""
TIME_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_LARGER = re.compile(r"tok|req|quer|user|image|sample|step|iter|it/", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One thing that a sentence says about speed."""

    kind: Kind
    start: int
    end: int
    said: str
    value: float = math.nan
    """The least that the words can mean: baseline time / candidate time, a share from 0 to 1, ns, or a rate per s."""
    reach: float = math.nan
    """The most: what the next digit would say, since a number may have been rounded down."""
    number: str = ""
    """The number as it is written."""
    interval: tuple[str, str] | None = None
    best_case: bool = False
    """Said of the best of several, which aren't named."""
    slower: bool = False
    end_to_end: bool = False
    """Said, by its unit, of something larger than an operation."""


def ratio(match: re.Match[str]) -> Figure:
    """`1.29x`, `three times`."""
    number = _number(match)
    slower = re.match(r"\s*(?:as\s+)?slow", match.string[match.end() :]) is not None
    return _made(match, "ratio", value_of(number), value_of(number) + _step(number), number=number, slower=slower)


def fell(match: re.Match[str]) -> Figure:
    """`from 2.62 us to 2.04 us`, `2.04 us instead of 2.62 us`: their ratio, as far as rounding lets it be known."""
    before, after = (_time_ns(match, name) for name in ("before", "after"))
    if not (before[0] > 0 and after[0] > 0):
        return absolute(match)
    return _made(match, "ratio", before[0] / after[1], before[1] / after[0])


def _time_ns(match: re.Match[str], name: str) -> tuple[float, float]:
    number, unit = match[name], TIME_NS[match[f"{name}_unit"]]
    value, half = value_of(number), _step(number) / 2
    return (value - half) * unit, (value + half) * unit


def floor_share(match: re.Match[str]) -> Figure:
    """`82 % of its floor`."""
    return _made(match, "floor_share", value_of(match["n"]) / 100, math.nan, number=match["n"])


def time(match: re.Match[str]) -> Figure:
    """`1.89 us per call`."""
    value = value_of(match["n"]) * TIME_NS[match["unit"]]
    return _made(match, "time", value, math.nan, number=match["n"])


def rate(match: re.Match[str]) -> Figure:
    """`4.26 TB/s`, `803 TFLOP/s`, `120 tokens/s`."""
    number, groups = _number(match), match.groupdict()
    value = value_of(number) * PREFIX[(groups.get("prefix") or "").lower()]
    larger = "prefix" not in groups and _LARGER.search(match[0]) is not None
    return _made(match, "rate", value, math.nan, number=number, end_to_end=larger)


def compared(match: re.Match[str]) -> Figure:
    """`faster than eager`."""
    return _made(match, "compared", math.nan, math.nan, slower="slow" in match[0].lower())


def absolute(match: re.Match[str]) -> Figure:
    """`zero overhead`, `the fastest kernel`."""
    return _made(match, "absolute", math.nan, math.nan)


def unreadable(match: re.Match[str]) -> Figure:
    """`needs twice as long`: a number beside a word of time or speed, said in no way that is known."""
    return _made(match, "unreadable", math.nan, math.nan, number=match.groupdict().get("n") or "")


def _number(match: re.Match[str]) -> str:
    groups = match.groupdict()
    found = groups.get("n") or groups.get("w")
    assert found is not None
    return found


def _step(number: str) -> float:
    """One more in the last digit."""
    return 1.0 if " ".join(number.lower().split()) in WORDS else 10.0 ** -decimals_of(number)


def _made(
    match: re.Match[str],
    kind: Kind,
    value: float,
    reach: float,
    *,
    number: str = "",
    slower: bool = False,
    end_to_end: bool = False,
) -> Figure:
    return Figure(
        kind=kind,
        start=match.start(),
        end=match.end(),
        said=" ".join(match[0].split()),
        value=value,
        reach=reach,
        number=number,
        slower=slower,
        end_to_end=end_to_end,
    )
