"""Finds what a passage says about speed: its sentences, the figures in each, and their intervals.

What is found is held against the ledger, so a doubtful figure is taken, and a page says itself what is no claim.
`1.5x` alone is a figure; `16 x 4096`, `4 times` and `5 %` are, if the sentence speaks of speed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forge.claims.figure import PREFIX, Figure, floor_share, rate, ratio
from forge.claims.number import NUMBER, plain, value_of
from forge.claims.patterns import (
    BRACKETED_INTERVALS,
    CELL_INTERVAL,
    FLOOR_COLUMN,
    INTERVAL_COLUMN,
    LEAST,
    MOST,
    NAMED_INTERVAL,
    PATTERNS,
    RATE_COLUMN,
    RATIO_COLUMN,
    SPEED,
    TIME,
    WITHIN_MOST,
)
from forge.claims.prose import Passage

CELL_GAP = " | "
BETWEEN_CHARACTERS = 90
"""As far as an interval's upper end may stand behind its ratio."""
LOOKED_BACK = 40
"""Characters before a figure in which `up to` and `at least` are looked for."""
_END = re.compile(r"(?<=[.!?;])[\"')\]*_]*\s+(?=[\"'(\[*_`~<>=-]*[A-Z0-9]|(?:cpp|cuda|triton|torch|hip|metal)_)")
"""A sentence's end; a kernel's id begins one without a capital."""
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|vs|approx|resp|cf|no|fig|max|min)\.$", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:can't|cannot|isn't|is not|aren't|never|not)\s+(?:be\s+)?$", re.IGNORECASE)
_CELL_NUMBER = re.compile(rf"\s*(?:about|approx\.?|up to|[~<>=≈≥≤*]+)?\s*(?P<n>{NUMBER})", re.IGNORECASE)
_CELL_PERCENT = re.compile(rf"\s*[~<>=≈≥≤*]*\s*(?P<n>{NUMBER})\s?%")
_CELL_RATE = re.compile(rf"\s*(?P<n>{NUMBER})")


@dataclass(frozen=True)
class Sentence:
    """One sentence of a passage, or a whole row, with what it says about speed."""

    line: int
    text: str
    passage: Passage
    figures: tuple[Figure, ...]
    times: tuple[Figure, ...]
    """Times that it gives: about a kernel only if it cites one."""


def sentences(passage: Passage) -> Iterator[Sentence]:
    """A passage's sentences, in order."""
    whole = plain(passage.text)
    if passage.cells:
        yield Sentence(passage.line, whole, passage, _row_figures(passage, whole), _times(whole))
        return
    for start, text in _split(whole):
        line = passage.line + whole.count("\n", 0, start)
        yield Sentence(line, text, passage, figures(text), _times(text))


def _split(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in _END.finditer(text):
        if _ABBREVIATED.search(text[start : match.start()]):
            continue
        yield start, text[start : match.start()]
        start = match.end()
    if text[start:].strip():
        yield start, text[start:]


def figures(text: str) -> tuple[Figure, ...]:
    """What one sentence says about speed, in order, each ratio with its interval."""
    flat = text.replace("\n", " ")
    named = tuple(NAMED_INTERVAL.finditer(flat))
    taken = bytearray(len(flat))
    for match in named:
        taken[match.start() : match.end()] = b"x" * len(match[0])
    found: list[Figure] = []
    speaks = SPEED.search(flat) is not None
    for pattern in PATTERNS:
        if pattern.needs_speed and not speaks:
            continue
        for match in pattern.expression.finditer(flat):
            if not any(taken[match.start() : match.end()]) and not _denied(match):
                found.append(_worded(pattern.read(match), flat))
                taken[match.start() : match.end()] = b"x" * len(match[0])
    if not any(one.kind == "ratio" for one in found) and speaks:
        found += [_from_interval(match) for match in named]
    return tuple(sorted(_once([_with_interval(one, flat, named) for one in found]), key=lambda one: one.start))


def _denied(match: re.Match[str]) -> bool:
    """`It can't be faster than the baselines` claims nothing; of a named baseline it would, the other way round."""
    unnamed = match[0].lower().endswith(("baseline", "baselines"))
    return unnamed and _DENIAL.search(match.string, 0, match.start()) is not None


def _worded(one: Figure, text: str) -> Figure:
    """With what the words in it and before it make of it."""
    before = text[max(0, one.start - LOOKED_BACK) : one.start]
    if MOST.search(before) or WITHIN_MOST.search(one.said):
        return replace(one, best_case=True)
    return replace(one, reach=float("inf")) if LEAST.search(before) and one.kind == "ratio" else one


def _from_interval(match: re.Match[str]) -> Figure:
    """An interval that stands alone claims its upper end."""
    value = value_of(match["high"])
    said = " ".join(match[0].split())
    return Figure(
        kind="ratio", start=match.start(), end=match.end(), said=said, value=value, reach=value, number=match["high"]
    )


def _with_interval(one: Figure, text: str, named: tuple[re.Match[str], ...]) -> Figure:
    """The interval in brackets behind it, else the first named one behind it, else the only one there is."""
    if one.kind != "ratio":
        return one
    tried = (expression.match(text, one.end) for expression in BRACKETED_INTERVALS)
    match = next((found for found in tried if found), None)
    if match is None:
        behind = [found for found in named if found.start() >= one.end]
        match = behind[0] if behind else named[0] if len(named) == 1 else None
    return replace(one, interval=(match["low"], match["high"])) if match else one


def _once(found: list[Figure]) -> list[Figure]:
    """Without what says again what the figure before it said: the end of its interval, or that it is faster."""
    kept: list[Figure] = []
    for one in sorted(found, key=lambda figure: figure.start):
        if not (kept and _repeats(one, kept[-1])):
            kept.append(one)
    return kept


def _repeats(one: Figure, before: Figure) -> bool:
    if before.kind != "ratio":
        return False
    apart = one.start - before.end
    if one.kind == "compared":
        return apart <= len(" times ")
    return before.interval is not None and one.number == before.interval[1] and apart < BETWEEN_CHARACTERS


def _times(text: str) -> tuple[Figure, ...]:
    return tuple(TIME.read(match) for match in TIME.expression.finditer(text.replace("\n", " ")))


def _row_figures(passage: Passage, whole: str) -> tuple[Figure, ...]:
    """What a row says: each cell as its column is called."""
    found: list[Figure] = []
    offset = 0
    cells = whole.split(CELL_GAP) if whole.count(CELL_GAP) == len(passage.cells) - 1 else [whole]
    interval = _interval_column(cells, passage.header)
    for index, cell in enumerate(cells):
        header = plain(passage.header[index]) if index < len(passage.header) else ""
        for one in _cell_figures(cell, header):
            own = replace(one, interval=one.interval or interval) if one.kind == "ratio" else one
            found.append(replace(own, start=one.start + offset, end=one.end + offset))
        offset += len(cell) + len(CELL_GAP)
    return tuple(found)


def _cell_figures(cell: str, header: str) -> tuple[Figure, ...]:
    """By its own words, or else by its column's."""
    own = figures(cell)
    if own or not cell.strip():
        return own
    if FLOOR_COLUMN.search(header) and (match := _CELL_PERCENT.match(cell)):
        return (floor_share(match),)
    if (unit := RATE_COLUMN.search(header)) and (match := _CELL_RATE.match(cell)):
        return (replace(rate(match), value=rate(match).value * _prefix(unit)),)
    if RATIO_COLUMN.search(header) and (match := _CELL_NUMBER.match(cell)):
        return (_with_interval(_worded(ratio(match), cell), cell, tuple(NAMED_INTERVAL.finditer(cell))),)
    return ()


def _prefix(unit: re.Match[str]) -> float:
    return PREFIX[(unit["prefix"] or "").lower()]


def _interval_column(cells: list[str], header: tuple[str, ...]) -> tuple[str, str] | None:
    for cell, name in zip(cells, header, strict=False):
        match = CELL_INTERVAL.fullmatch(cell)
        if match and INTERVAL_COLUMN.search(name):
            return match["low"], match["high"]
    return None
