"""Finds what a passage says about speed: its sentences, and the figures in each.

Few forms are read: `1.29x` with its interval, a share of the floor, a rate, and a time beside its evidence.
Every other number with a unit of speed, or beside a word of speed, becomes a figure that can't be read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forge.claims import forms
from forge.claims.forms import Kind
from forge.claims.named import ANY_PROCESSOR, EVENT, KERNEL_ID, Cited, cited, first, processors
from forge.claims.number import plain, value_of
from forge.claims.prose import Passage

CELL_GAP = " | "
"""Text between the cells of a table's line."""
LOOKED_BACK = 40
"""Number of characters before a figure that are searched for `up to`: longer than each such phrase."""
REPEATED_WITHIN = 7
"""Largest number of characters between `1.29x` and `faster than eager`, of which it is the measure."""
_TIME_NS = {"n": 1.0, "u": 1e3, "mic": 1e3, "mil": 1e6, "m": 1e6, "s": 1e9}
"""Beginning of a unit of time -> its number of nanoseconds."""
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
"""Factor of a unit's prefix."""


@dataclass(frozen=True, kw_only=True)
class SpokenFigure:
    """One thing that a sentence says about speed."""

    kind: Kind
    start: int
    end: int
    said: str
    number: str = ""
    """The number as it is written; empty where there is none, or more than one, or a fraction."""
    unit: float = 1.0
    """Nanoseconds for a time, units per second for a rate."""
    interval: tuple[str, str] | None = None
    best_case: bool = False
    least: bool = False
    """Whether it is said to be a lower bound, as in `more than 1.2x`."""

    @property
    def value(self) -> float:
        """The number times its unit."""
        return value_of(self.number) * self.unit


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence of a passage, or a whole row, with what it says about speed."""

    line: int
    text: str
    block: str
    """The whole passage behind the header of its table: where a sentence may name things, too."""
    passage: Passage
    figures: tuple[SpokenFigure, ...]

    @property
    def cites(self) -> Cited:
        """The evidence that it names, or else its passage."""
        return cited(self.text) or cited(self.block)


def sentences(passage: Passage) -> Iterator[Sentence]:
    """Yield a passage's sentences, in order."""
    whole = plain(passage.text)
    block = CELL_GAP.join([*map(plain, passage.header), whole]).replace("\n", " ")
    for start, part in ((0, whole),) if passage.cells else _split(whole):
        text = part.replace("\n", " ")
        found = _row_figures(passage, text) if passage.cells else figures(text)
        found += _times(text) if cited(text) else ()
        found += _carried(text, block) if not found and cited(block) else ()
        line = passage.line + whole.count("\n", 0, start)
        yield Sentence(line=line, text=text, block=block, passage=passage, figures=found)


def _split(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in forms.END.finditer(text):
        if not forms.ABBREVIATED.search(text[max(start, match.start() - LOOKED_BACK) : match.start()]):
            yield start, text[start : match.start()]
            start = match.end()
    if text[start:].strip():
        yield start, text[start:]


def figures(text: str) -> tuple[SpokenFigure, ...]:
    """Return the figures of one sentence in order, each ratio with its interval."""
    named = tuple(forms.NAMED_INTERVAL.finditer(text))
    taken = bytearray(len(text))
    for match in named:
        taken[match.start() : match.end()] = b"x" * len(match[0])
    found: list[SpokenFigure] = []
    speaks = (forms.SPEED.search(text) or KERNEL_ID.search(text)) is not None
    for kind, expression, beside_speed in forms.FORMS:
        if beside_speed and not speaks:
            continue
        for match in expression.finditer(text):
            denied = match.groupdict().get("denied") and forms.DENIAL.search(text[: match.start()][-LOOKED_BACK:])
            if any(taken[match.start() : match.end()]) or denied:
                continue
            one, brackets = _with_interval(_figure(kind, match), text, named)
            if kind == "ratio" and forms.OPERATOR.search(text[: match.start()][-LOOKED_BACK:]):
                one = replace(one, kind="unreadable")
            for start, end in (match.span(), brackets):
                taken[start:end] = b"x" * (end - start)
            compared = match.groupdict().get("compared")
            if not (compared and any(0 <= one.start - ratio.end <= REPEATED_WITHIN for ratio in found)):
                found.append(one)
    if speaks and not any(one.kind == "ratio" for one in found):
        found += [_figure("unreadable", match) for match in named]
    return tuple(sorted(found, key=lambda one: one.start))


def _figure(kind: Kind, match: re.Match[str], unit: float = 1.0) -> SpokenFigure:
    groups = match.groupdict()
    number = groups.get("n") or groups.get("high") or ""
    with_before = match.string[max(0, match.start() - LOOKED_BACK) : match.end()]
    return SpokenFigure(
        kind=kind,
        start=match.start(),
        end=match.end(),
        said=" ".join(match[0].split()),
        number="" if "/" in number else number,
        unit=unit * _PREFIX[(groups.get("prefix") or "").lower()],
        best_case=forms.MOST.search(with_before) is not None,
        least=forms.LEAST.search(with_before[: -len(match[0]) or None]) is not None
        or match.string[match.end() :].startswith("+"),
    )


def _with_interval(
    one: SpokenFigure, text: str, named: tuple[re.Match[str], ...]
) -> tuple[SpokenFigure, tuple[int, int]]:
    """Return a ratio with its interval: in brackets behind it, named behind it, or the only one.

    The second value is the place of the interval in brackets.
    """
    if one.kind != "ratio":
        return one, (one.end, one.end)
    bracketed = next((found for each in forms.INTERVAL_BEHIND if (found := each.match(text, one.end))), None)
    behind = [found for found in named if found.start() >= one.end] or named[: len(named) == 1]
    match = bracketed or next(iter(behind), None)
    interval = (match["low"], match["high"]) if match else None
    place = (bracketed.start("low"), bracketed.end()) if bracketed else (one.end, one.end)
    return replace(one, interval=interval), place


def _carried(text: str, block: str) -> tuple[SpokenFigure, ...]:
    """Return the words by which a sentence says of another processor what a sentence beside it says of one."""
    match = forms.CARRIED.search(text)
    known = {name for kernel_id in cited(block).kernels for name in kernel_id.split("_")}
    known |= {slug for slug in processors(block.replace(text, " ")).values() if slug is not None}
    elsewhere = first(ANY_PROCESSOR, text) or not known.issuperset(processors(text).values())
    return (_figure("unreadable", match),) if match and elsewhere else ()


def _times(text: str) -> tuple[SpokenFigure, ...]:
    """Return the times in a sentence that cites evidence; most other times aren't about kernels."""
    read = tuple(_figure("time", match, unit_ns(match["unit"])) for match in forms.TIME.finditer(text))
    return read + tuple(_figure("unreadable", match) for match in forms.OTHER_TIME.finditer(text))


def unit_ns(unit: str) -> float:
    """Return the number of nanoseconds in a unit of time, as `us` or `microseconds`."""
    return next(factor for start, factor in _TIME_NS.items() if unit.startswith(start))


def _row_figures(passage: Passage, whole: str) -> tuple[SpokenFigure, ...]:
    """Return the figures of each cell, read by its own words or by the name of its column."""
    cells = whole.split(CELL_GAP)
    headers = [plain(name) for name in passage.header] + [""] * len(cells)
    if len(cells) != len(passage.cells):
        cells, headers = [whole], [""]
    columns = [
        forms.CELL_INTERVAL.fullmatch(cell)
        for cell, name in zip(cells, headers, strict=False)
        if forms.INTERVAL_COLUMN.search(name)
    ]
    interval = next(((match["low"], match["high"]) for match in columns if match), None)
    found: list[SpokenFigure] = []
    offset = 0
    others = [cell for cell in cells if not forms.CELL_INTERVAL.fullmatch(cell)]
    has_ratio = any(map(forms.RATIO_COLUMN.search, headers)) or any(
        one.kind == "ratio" for cell in others for one in figures(cell)
    )
    for cell, header in zip(cells, headers, strict=False):
        if has_ratio and forms.INTERVAL_COLUMN.search(header) and forms.CELL_INTERVAL.fullmatch(cell):
            offset += len(cell) + len(CELL_GAP)
            continue
        for one in figures(cell) or _by_column(cell, header, is_cited=bool(cited(whole))):
            own = replace(one, interval=one.interval or interval) if one.kind == "ratio" else one
            found.append(replace(own, start=one.start + offset, end=one.end + offset))
        offset += len(cell) + len(CELL_GAP)
    return tuple(found)


def _by_column(cell: str, header: str, *, is_cited: bool) -> tuple[SpokenFigure, ...]:
    match = forms.CELL.match(cell)
    if match is None:
        word = forms.CELL_WORD.match(cell) if forms.RATIO_COLUMN.search(header) else None
        return (_figure("unreadable", word),) if word else ()
    if (match["percent"] or "%" in header) and forms.FLOOR_COLUMN.search(header):
        return (_figure("floor_share", match),)
    if unit := forms.TIME_COLUMN.search(header):
        return (_figure("time", match, unit_ns((unit["unit"] or unit["bare"]).lower())),) if is_cited else ()
    if unit := forms.RATE_COLUMN.search(header):
        return (_figure("rate", match, _PREFIX[(unit["prefix"] or "").lower()]),)
    if forms.RATIO_COLUMN.search(header):
        one, brackets = _with_interval(_figure("ratio", match), cell, tuple(forms.NAMED_INTERVAL.finditer(cell)))
        rest = cell[match.end() : brackets[0]] + cell[max(match.end(), brackets[1]) :]
        beside = None if one.interval else forms.CELL_MORE.search(EVENT.sub(" ", rest))
        return (replace(one, kind="unreadable") if match["percent"] or beside else one,)
    return ()
