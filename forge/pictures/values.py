"""The values that pictures are drawn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

LONGEST_NAME = 64
"""Largest length of a name in characters; longer names leave no space for the plot."""
GAP = "..."
"""Text that stands for the letters left out of a long name."""
Standing = Literal["counted", "refused", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One speedup with its 95 % interval."""

    name: str
    ratio: float
    low: float
    high: float
    over: str
    """The baseline."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One measurement in a history, in the order in which they were recorded."""

    recorded_at: str
    series: str
    """Name of the series: a candidate at a shape."""
    time_us: float
    ratio: float
    low: float
    high: float
    standing: Standing
    machine: Mapping[str, str | None]
    """Facts about the machine whose changes are drawn: GPU, driver, torch, triton."""
    machine_key: str
    """Key that is equal for machines whose times may be compared."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One candidate under a roofline."""

    series: str
    """Operation of the candidate. Points of one operation have one colour."""
    flop_per_byte: float
    flop_per_s: float
    promoted: bool


@dataclass(frozen=True, slots=True)
class Roofs:
    """The highest rates measured on one machine."""

    name: str
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    """Path to memory -> its rate. Each is a slope of the roofline."""
    flop_per_s: Mapping[str, float] = field(default_factory=dict)
    """Element type -> rate of its matrix products. Each is a level of the roofline."""


def legible(text: str, limit: int = LONGEST_NAME) -> str:
    """Return a name as one line of at most `limit` printable characters.

    A long one loses its middle: ids differ at their ends.
    """
    plain = _printable(text)
    if len(plain) <= limit:
        return plain
    kept = limit - len(GAP)
    return f"{plain[: kept // 2]}{GAP}{plain[len(plain) - (kept - kept // 2) :]}"


def _printable(text: str) -> str:
    """Return the text without control characters; of a very long one only both ends, which are all that is shown."""
    ends = text if len(text) <= 2 * LONGEST_NAME else text[:LONGEST_NAME] + text[-LONGEST_NAME:]
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in ends)


def machine_changes(moments: Sequence[Moment]) -> list[tuple[int, str]]:
    """Return the positions at which the kind of machine changes, and what differs from the one before."""
    found = []
    for place, (before, after) in enumerate(pairwise(moments), start=1):
        if before.machine_key != after.machine_key:
            names = [name for name in after.machine if before.machine.get(name) != after.machine[name]]
            told = [f"{name} {before.machine.get(name)} → {after.machine[name]}" for name in names]
            found.append((place, ", ".join(told) or "another processor or compiler"))
    return found
