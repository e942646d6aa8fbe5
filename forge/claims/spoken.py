"""Finds what a passage says about speed: its sentences, and the figures in each.

Few forms are read: `1.29x` with its interval, a share of the floor, a rate, and a time beside its evidence.
Every other number with a unit of speed, or beside a word of speed, becomes a figure that can't be read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from forge.claims.named import Cited, cited
from forge.claims.number import NUMBER, PLAIN_NUMBER, WORD, plain, value_of
from forge.claims.prose import Passage

Kind = Literal["ratio", "floor_share", "time", "rate", "boast", "unreadable"]
"""A boast gives no number; `unreadable` has one, in a form that isn't read."""
CELL_GAP = " | "
LOOKED_BACK = 40
"""Number of characters before a figure that are searched for `up to`: longer than each such phrase."""
REPEATED_WITHIN = 7
"""Largest number of characters between `1.29x` and `faster than eager` which it says the measure of."""
_TIME_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_LIBRARY = (
    r"(?:pytorch|torch|eager|compile\b|the compiler|the vendor|vendor|cublas\w*|cudnn|cutlass|tensorrt[\w-]*"
    r"|flash[- ]?attention\S*|flashinfer|vllm|sglang|inductor|triton|onednn|mkl|liger|apex|xformers|cuda)"
)
_SPEED = re.compile(
    r"\b(?:fast(?:er|est)?|slow(?:er|est)?|quick(?:er|est|ly)?|speed\w*|sped|latenc\w+|throughput|perf|performan\w+"
    r"|outperform\w*|run[- ]?times?|wall[- ]clock|accelerat\w+|snappier"
    r"|(?:execution|compute|kernel|step|response|wall|gpu|device) times?)\b"
    rf"|\b(?:over|than|vs\.?|versus|against|compared (?:to|with)|of) (?:plain |the )?(?:{_LIBRARY}|baselines?\b)",
    re.I,
)
"""Words that make a number in their sentence one about speed."""
_N = rf"(?P<n>{NUMBER})"
_NW = rf"(?:{_N}|\b{WORD})"
_NEAR = r"[^.;!?|]{0,40}?"
_BESIDE = r"[^\d.,;:!?|()]{0,25}?"
_SEP = r"(?:to|-|and|\.\.+)"
_UNIT = r"(?:ns|us|ms|s)"
_PERCENT = r"\s?(?:%|percent\b|per cent\b|pct\b)(?!\s*(?:confidence|intervals?|ci)\b)"
_NO_GPU = r"(?!\s*(?:NVIDIA|AMD|RTX|MI\d|[HABL]\d{2,3}|GPUs?\b|cards?\b))"
_NO_QUANTITY = r"(?!\s*(?:more|fewer|as many|as much|larger|smaller|bigger|longer|the|what)\b)"
_SLOWER = r"(?!\s*(?:slower|as\s+slow)\b)"
_FACTOR = r"(?:twice|thrice|double|triple|quadruple|half|a (?:third|quarter|fifth|tenth))"
_AMOUNT = r"(?:\w+[- ])?(?:latenc\w+|times?|runtimes?|durations?|throughput|speed|performance|rate)\b"
_ANY_NUMBER = (
    rf"(?:(?P<n>(?<![\w.,/]){PLAIN_NUMBER}(?:/\d+)?(?!\s?%\s*(?:confidence|interval)))"
    rf"|\b(?!one\b)(?:{WORD}|{_FACTOR})\b)"
)
_COMPARED = r"(?:(?<!no )longer|shorter|faster|slower|quicker|speed-?ups?)"
_OF_TIME = r"(?:of (?:the|its|their|that) (?:\w+ )?time|(?:per|each) second|(?<=s )a second)"
_AS = r"(?:\s?(?:x|times|fold|%|percent))?\s+as\s+(?:long|short|fast|slow|quick\w*)\b"
_AGAINST = (
    r"(?:instead of|rather than|versus|vs|against|compared (?:to|with)|down from"
    r"|(?:with|by|for|in|using|under|from)\s+(?:plain |the )?(?:pytorch|torch|eager|compile|inductor"
    r"|compiler|vendor|cublas|cudnn))"
)
_THAN = r"\s+(?:[\w'-]+\s+){0,2}?"
_SPAN = rf"(?P<low>{PLAIN_NUMBER})\s?x?\s*(?:,|{_SEP})\s*(?P<high>{PLAIN_NUMBER})"
_NAMED_INTERVAL = re.compile(rf"95\s?%\s*(?:confidence\s*)?(?:intervals?|ci)?[^\d|]{{0,24}}{_SPAN}(?:\s?x\b)?", re.I)
_INTERVAL_BEHIND = tuple(
    re.compile(
        rf"[^\d()\[\]|;]{{0,60}}[\[(]\s*(?P<low>{number})\s?x?\s*{gap}\s*(?P<high>{number})\s?x?\s*[\])]", re.I
    )
    for number, gap in ((PLAIN_NUMBER, _SEP), (r"\d+\.\d+", ","))
)
"""In brackets behind a ratio; with a comma in between, integers would be sizes."""
_CELL_INTERVAL = re.compile(rf"\s*[\[(]?\s*{_SPAN}\s?x?\s*[\])]?\s*", re.I)
_MOST = re.compile(
    r"\b(?:up to|as (?:much|high|fast) as|at best|peak(?:s|ing)? (?:at|of)|max(?:imum)?(?: of)?|best case)[\s:]*$",
    re.I,
)
_WITHIN_MOST = re.compile(r"\b(?:up to|as much as|at best)\b", re.I)


def _form(kind: Kind, expression: str, *, beside_speed: bool = False) -> tuple[Kind, re.Pattern[str], bool]:
    """A form, and whether it counts only in a sentence with a word of speed."""
    return kind, re.compile(expression, re.I), beside_speed


_FORMS = (
    _form("ratio", rf"{_N}x(?!\w)(?!\s*\d){_NO_GPU}{_NO_QUANTITY}{_SLOWER}"),
    _form("ratio", rf"{_N}(?:x(?!\w)(?!\s*\d)| x(?!\w)(?!\s*[\d.])){_NO_GPU}{_SLOWER}", beside_speed=True),
    _form(
        "ratio",
        rf"{_N}(?=\s*[\[(]\s*{PLAIN_NUMBER}\s?x?\s*(?:to|-)\s*{PLAIN_NUMBER}\s?x?\s*[\])])",
        beside_speed=True,
    ),
    _form("floor_share", rf"{_N}{_PERCENT}\s+of\s+(?:the|its|their|that|what)\b{_NEAR}\bfloor\b"),
    _form("rate", rf"{_N}\s?(?P<prefix>[kmgtp])?(?:i?B/s(?:ec)?|flops?/s|(?<=[kmgtp])flops?|ops/s)(?!\w)"),
    _form("rate", rf"{_N}\s?(?P<of>[a-z]+)(?:/s(?:ec(?:ond)?)?|\s+(?:per|a|each)\s+second)\b"),
    _form(
        "boast",
        rf"{_N}{_PERCENT}\s+of\s+(?:the\s+|its\s+)?{_NEAR}\b(?:peak|roofline|speed of light|bandwidth|ceiling)\b"
        r"|\b(?:zero|no|near-zero|negligible|without(?:\s+any)?)[\s-]+(?:\w+\s+){0,2}?overhead\b|\boverhead-free\b"
        r"|\bzero-cost\b|\bfastest\s+(?:[\w-]+\s+){0,3}?(?:kernels?|implementations?|librar(?:y|ies)|engines?"
        r"|on the market|in the world|available|ever)\b|\bstate[- ]of[- ]the[- ]art\s+(?:performance|speed|throughput"
        r"|latency)\b|\bfastest\b[^.;!?|]{0,60}\b(?:published|known|ever|anyone|anywhere|exists?|to date|so far)\b"
        r"|\b(?:unmatched|unbeaten|unrivall?ed|unparallel\w+)\s+(?:performance|speed|throughput)\b"
        r"|\b(?:blazing(?:ly)?|lightning|blistering(?:ly)?|insanely)[- ]fast\b|\b(?:much|far|significantly"
        r"|considerably|dramatically|substantially|vastly|way|several|many|multiple)\s+(?:times\s+)?(?:faster|quicker)\b",
    ),
    _form(
        "boast",
        rf"\b(?P<compared>(?:faster|quicker|slower)\s+than|(?:outperform|outpac|outrun|surpass|beat)(?:s|es|ed|ing)?"
        rf"|as\s+fast\s+as|on\s+(?:a\s+)?par\s+with|at\s+parity\s+with){_THAN}(?:{_LIBRARY}|(?P<denied>baselines?\b))",
    ),
    _form("unreadable", rf"{NUMBER}\s?x?\s*{_SEP}\s*(?P<n>{PLAIN_NUMBER})\s?x(?!\w)(?!\s*\d){_NO_QUANTITY}"),
    _form("unreadable", rf"\bfrom\s+{NUMBER}\s?{_UNIT}\b{_NEAR}\bto\s+{NUMBER}\s?{_UNIT}\b"),
    _form("unreadable", rf"{NUMBER}\s?{_UNIT}\b{_NEAR}\b{_AGAINST}\b.*?{NUMBER}\s?{_UNIT}\b"),
    _form(
        "unreadable",
        rf"{_NW}(?:[\s-]?(?:fold|times)\b(?!\s+(?:have|has|are|is|were|was)\b)|{_PERCENT})",
        beside_speed=True,
    ),
    _form(
        "unreadable",
        rf"\b(?:{_COMPARED}|factor)\s*(?:of|is|was|by|:|=)\s*(?:about\s+|a\s+factor\s+of\s+){{0,2}}{_NW}",
        beside_speed=True,
    ),
    _form("unreadable", rf"\b{WORD}\s?[a-z]+(?:/s|\s+(?:per|a|each)\s+s)(?:ec(?:ond)?)?\b"),
    _form("unreadable", rf"{_ANY_NUMBER}(?:{_AS}|{_BESIDE}\b(?:{_COMPARED}|{_OF_TIME})\b)"),
    _form("unreadable", rf"\b{_COMPARED}{_BESIDE}{_ANY_NUMBER}"),
    _form(
        "unreadable",
        rf"\b{_FACTOR}\s+(?:of\s+)?(?:as\s+(?:fast|quick)|(?:the|its|their)\s+{_AMOUNT})"
        rf"|\b(?:doubl|tripl|quadrupl|halv)(?:es?|ed|ing)\b{_NEAR}\b{_AMOUNT}|\bcut(?:s|ting)?\b{_NEAR}\bin\s+half\b"
        rf"|\b(?:an?|by|{WORD})\s+orders?[- ]of[- ]magnitude\b",
    ),
)
"""In order: what one form took isn't offered to those behind it."""
_TIME = re.compile(rf"{_N}\s?(?P<unit>{_UNIT})\b")
_DENIAL = re.compile(r"(?:\b(?:cannot|never|not)|n't)\s+(?:be\s+)?$", re.I)
_LARGER = re.compile(r"tok|req|quer|user|image|sample|step|iter|it/", re.I)
_END = re.compile(r"(?<=[.!?;])[\"')\]*_]*\s+(?=[\"'(\[*_`~<>=-]*[A-Z0-9]|(?:cpp|cuda|triton|torch|hip|metal)_)")
"""The end of a sentence; a kernel's id begins one without a capital."""
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|vs|approx|resp|cf|no|fig|max|min)\.$", re.I)
_CELL = re.compile(rf"\s*(?:about|approx\.?|up to|[~<>=≈≥≤*]+)?\s*{_N}(?P<percent>\s?%)?", re.I)
_FLOOR_COLUMN = re.compile(r"\bfloor\b", re.I)
_RATE_COLUMN = re.compile(
    r"(?:\b|(?<=\d))(?P<prefix>[kmgtp])?(?:i?b/s|flops?/s|(?<=[kmgtp])flops)\b|\b[a-z]+/s\b", re.I
)
_RATIO_COLUMN = re.compile(r"speed-?up|\bratio\b|\bfaster\b|\bas fast\b", re.I)
_INTERVAL_COLUMN = re.compile(r"interval|\bci\b|95\s?%", re.I)


@dataclass(frozen=True, kw_only=True)
class Figure:
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
    end_to_end: bool = False
    """Whether its unit belongs to something larger than an operation, such as tokens per second."""

    @property
    def value(self) -> float:
        """The number in its unit."""
        return value_of(self.number) * self.unit


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence of a passage, or a whole row, with what it says about speed."""

    line: int
    text: str
    block: str
    """The whole passage behind the header of its table: where a sentence may name things, too."""
    passage: Passage
    figures: tuple[Figure, ...]

    @property
    def cites(self) -> Cited:
        """The evidence that it names, or else its passage."""
        return cited(self.text) or cited(self.block)


def sentences(passage: Passage) -> Iterator[Sentence]:
    """A passage's sentences, in order."""
    whole = plain(passage.text)
    block = CELL_GAP.join([*map(plain, passage.header), whole]).replace("\n", " ")
    for start, part in ((0, whole),) if passage.cells else _split(whole):
        text = part.replace("\n", " ")
        found = _row_figures(passage, text) if passage.cells else figures(text)
        found += _times(text) if cited(text) else ()
        line = passage.line + whole.count("\n", 0, start)
        yield Sentence(line=line, text=text, block=block, passage=passage, figures=found)


def _split(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in _END.finditer(text):
        if not _ABBREVIATED.search(text[max(start, match.start() - LOOKED_BACK) : match.start()]):
            yield start, text[start : match.start()]
            start = match.end()
    if text[start:].strip():
        yield start, text[start:]


def figures(text: str) -> tuple[Figure, ...]:
    """What one sentence says about speed, in order, each ratio with its interval."""
    named = tuple(_NAMED_INTERVAL.finditer(text))
    taken = bytearray(len(text))
    for match in named:
        taken[match.start() : match.end()] = b"x" * len(match[0])
    found: list[Figure] = []
    speaks = _SPEED.search(text) is not None
    for kind, expression, beside_speed in _FORMS:
        if beside_speed and not speaks:
            continue
        for match in expression.finditer(text):
            denied = match.groupdict().get("denied") and _DENIAL.search(text[: match.start()][-LOOKED_BACK:])
            if any(taken[match.start() : match.end()]) or denied:
                continue
            one, brackets = _with_interval(_figure(kind, match), text, named)
            for start, end in (match.span(), brackets):
                taken[start:end] = b"x" * (end - start)
            compared = match.groupdict().get("compared")
            if not (compared and any(0 <= one.start - ratio.end <= REPEATED_WITHIN for ratio in found)):
                found.append(one)
    if speaks and not any(one.kind == "ratio" for one in found):
        found += [_figure("unreadable", match) for match in named]
    return tuple(sorted(found, key=lambda one: one.start))


def _figure(kind: Kind, match: re.Match[str], unit: float = 1.0) -> Figure:
    groups = match.groupdict()
    number = groups.get("n") or groups.get("high") or ""
    before = match.string[max(0, match.start() - LOOKED_BACK) : match.start()]
    return Figure(
        kind=kind,
        start=match.start(),
        end=match.end(),
        said=" ".join(match[0].split()),
        number="" if "/" in number else number,
        unit=unit * _PREFIX[(groups.get("prefix") or "").lower()],
        best_case=bool(_MOST.search(before) or _WITHIN_MOST.search(match[0])),
        end_to_end=_LARGER.search(groups.get("of") or "") is not None,
    )


def _with_interval(one: Figure, text: str, named: tuple[re.Match[str], ...]) -> tuple[Figure, tuple[int, int]]:
    """A ratio with the interval in brackets behind it, else the first named one behind it, else the only one.

    The second value is the place of the interval in brackets.
    """
    if one.kind != "ratio":
        return one, (one.end, one.end)
    bracketed = next((found for each in _INTERVAL_BEHIND if (found := each.match(text, one.end))), None)
    behind = [found for found in named if found.start() >= one.end]
    match = bracketed or (behind[0] if behind else named[0] if len(named) == 1 else None)
    interval = (match["low"], match["high"]) if match else None
    return replace(one, interval=interval), (bracketed.start("low"), bracketed.end()) if bracketed else (
        one.end,
        one.end,
    )


def _times(text: str) -> tuple[Figure, ...]:
    """Times are read only beside a citation: most times aren't about kernels."""
    return tuple(_figure("time", match, _TIME_NS[match["unit"]]) for match in _TIME.finditer(text))


def _row_figures(passage: Passage, whole: str) -> tuple[Figure, ...]:
    """What each cell says: by its own words, or else by the name of its column."""
    cells = whole.split(CELL_GAP)
    headers = [plain(name) for name in passage.header] + [""] * len(cells)
    if len(cells) != len(passage.cells):
        cells, headers = [whole], [""]
    columns = [
        _CELL_INTERVAL.fullmatch(cell)
        for cell, name in zip(cells, headers, strict=False)
        if _INTERVAL_COLUMN.search(name)
    ]
    interval = next(((match["low"], match["high"]) for match in columns if match), None)
    found: list[Figure] = []
    offset = 0
    for cell, header in zip(cells, headers, strict=False):
        for one in figures(cell) or _by_column(cell, header):
            own = replace(one, interval=one.interval or interval) if one.kind == "ratio" else one
            found.append(replace(own, start=one.start + offset, end=one.end + offset))
        offset += len(cell) + len(CELL_GAP)
    return tuple(found)


def _by_column(cell: str, header: str) -> tuple[Figure, ...]:
    match = _CELL.match(cell)
    if match is None:
        return ()
    if match["percent"] and _FLOOR_COLUMN.search(header):
        return (_figure("floor_share", match),)
    if unit := _RATE_COLUMN.search(header):
        return (_figure("rate", match, _PREFIX[(unit["prefix"] or "").lower()]),)
    if _RATIO_COLUMN.search(header):
        return (_with_interval(_figure("ratio", match), cell, tuple(_NAMED_INTERVAL.finditer(cell)))[0],)
    return ()
