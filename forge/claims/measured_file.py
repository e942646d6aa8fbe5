"""Checks figures that aren't about kernels: the file that the page names must hold them."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath

import orjson

from forge.claims import named
from forge.claims.number import decimals_of, value_of
from forge.claims.spoken import SpokenFigure
from forge.claims.verdict import Fault, fault

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt")
"""Suffixes of files of measurements. A file of prose proves nothing about prose."""
LEAST_DIGITS = 2
"""Least number of digits of a figure. With fewer, nearly every file holds the number by chance."""
MOST_DECIMALS = 15
"""Largest number of decimals, more than a double has (IEEE 754)."""
_REMEMBERED = 8
"""Number of pairs of file and decimals whose figures are kept. Chosen; a page names a few files. Each remembered pair
holds its figures in memory."""
ReadFile = Callable[[str], str | None]
"""The text of a file that a page names as a link would; None if there is none that may be read."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
"""A number as programs write it; a comma separates two of them."""


def faults_in_file(figure: SpokenFigure, path: str, read: ReadFile) -> Iterator[Fault]:
    """Yield the faults of a figure that rests on a file."""
    if figure.kind == "boast":
        yield fault("no_measure", f"{figure.said!r} gives no number that {path} could hold")
    elif (why := _missing(figure, path, read)) is not None:
        yield fault("not_in_file", why)


def _missing(figure: SpokenFigure, path: str, read: ReadFile) -> str | None:
    """Return why the file doesn't hold the number; None if it does."""
    if PurePosixPath(path).suffix.lower() not in SUFFIXES:
        return f"{path!r} is no file of figures: expected {', '.join(SUFFIXES)}"
    text = read(path)
    if text is None:
        return f"there is no file {path!r} beside the page"
    if sum(sign.isdigit() for sign in figure.number.lstrip("0.")) < LEAST_DIGITS:
        return f"{figure.said!r} has too few digits to be found in a file: give two"
    decimals = decimals_of(figure.number)
    if decimals > MOST_DECIMALS:
        return f"{decimals} digits behind the point: expected {MOST_DECIMALS} at most"
    wanted = f"{value_of(figure.number):.{decimals}f}"
    return None if wanted in _written(text, path, decimals) else f"{path} holds no {wanted}"


def is_about_kernels(text: str) -> bool:
    """Return whether a sentence cites the ledger or names a baseline of kernels; then a named file isn't enough."""
    return bool(named.cited(text)) or any(one.kind != "pytorch" for one in named.baselines(text))


@lru_cache(_REMEMBERED)
def _written(text: str, path: str, decimals: int) -> frozenset[str]:
    """Return every number of a file, rounded to `decimals`. Results are kept: a page asks once for each figure."""
    return frozenset(f"{one:.{decimals}f}" for one in _numbers(text, path))


def _numbers(text: str, path: str) -> Iterator[float]:
    """Yield every number of a file. In JSON only values count."""
    if path.lower().endswith(".json"):
        try:
            yield from _values(orjson.loads(text))
        except orjson.JSONDecodeError:
            return
    else:
        for match in _NUMBER.finditer(text):
            yield float(match[0])


def _values(document: object) -> Iterator[float]:
    """Yield every number of a JSON document at any depth, in no order."""
    left = [document]
    while left:
        match left.pop():
            case dict() as one:
                left += one.values()
            case list() as one:
                left += one
            case bool():
                continue
            case int() | float() as number:
                yield float(number)
