"""What a picture is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

LONGEST_NAME = 64
"""Characters; more leave no room for what is drawn."""
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
    """Whose it is: a candidate at a shape."""
    time_us: float
    ratio: float
    low: float
    high: float
    standing: Standing
    machine: Mapping[str, str | None]
    """What a change of which is drawn: GPU, driver, torch, triton."""
    machine_key: str
    """Equal for machines whose times may be compared."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One candidate under a roofline."""

    series: str
    """Its operation."""
    flop_per_byte: float
    flop_per_s: float
    promoted: bool


@dataclass(frozen=True, slots=True)
class Roofs:
    """What one machine was seen to do at most."""

    name: str
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    """A way to memory -> its rate: each is a slope."""
    flop_per_s: Mapping[str, float] = field(default_factory=dict)
    """An element type -> the rate of its matrix products: each is a level."""


def legible(text: str) -> str:
    """A name as a picture or a terminal can show it: one line of printable characters, cut short."""
    plain = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text[: LONGEST_NAME + 1])
    return plain if len(plain) <= LONGEST_NAME else f"{plain[: LONGEST_NAME - 3]}..."


def machine_changes(moments: Sequence[Moment]) -> list[tuple[int, str]]:
    """Where a measurement was taken on another kind of machine than the one before it, and what differs."""
    found = []
    for place, (before, after) in enumerate(pairwise(moments), start=1):
        if before.machine_key != after.machine_key:
            names = [name for name in after.machine if before.machine.get(name) != after.machine[name]]
            told = [f"{name} {before.machine.get(name)} → {after.machine[name]}" for name in names]
            found.append((place, ", ".join(told) or "another processor or compiler"))
    return found
