"""Figures that aren't about kernels: whether the file that a page names beside them holds them."""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import orjson

from forge.claims import named
from forge.claims.figure import Figure
from forge.claims.number import decimals_of, rounds_to, value_of
from forge.claims.verdict import Fault

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt")
"""Files of measurements: prose can't vouch for prose."""
LEAST_DIGITS = 2
"""With fewer, nearly every file of figures holds the number by chance."""
ReadFile = Callable[[str], str | None]
"""The text of a file that a page names as a link would; None if there is none that may be read."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
"""As programs write numbers: a comma is what stands between two of them."""


def faults_in_file(figure: Figure, path: str, read: ReadFile) -> Iterator[Fault]:
    """What stands against a figure resting on a file."""
    if figure.kind in ("compared", "absolute"):
        yield Fault(problem="no_measure", why=f"{figure.said!r} gives no number that {path} could hold")
        return
    if PurePosixPath(path).suffix.lower() not in SUFFIXES:
        yield Fault(problem="not_in_file", why=f"{path!r} is no file of figures: expected {', '.join(SUFFIXES)}")
        return
    text = read(path)
    if text is None:
        yield Fault(problem="not_in_file", why=f"there is no file {path!r} beside the page")
        return
    if not figure.number or sum(sign.isdigit() for sign in figure.number.lstrip("0.")) < LEAST_DIGITS:
        yield Fault(problem="not_in_file", why=f"{figure.said!r} has too few digits to be found in a file: give two")
    elif not any(rounds_to(one, figure.number) for one in _numbers(text, path)):
        yield Fault(
            problem="not_in_file", why=f"{path} holds no {value_of(figure.number):.{decimals_of(figure.number)}f}"
        )


def is_about_kernels(text: str) -> bool:
    """Whether a sentence needs the ledger whatever file is named: it cites it, or names a baseline of kernels."""
    return bool(named.cited(text)) or any(one.kind != "pytorch" for one in named.baselines(text))


def _numbers(text: str, path: str) -> Iterator[float]:
    """Every number of a file; of JSON, those that are values."""
    if path.lower().endswith(".json"):
        try:
            yield from _values(orjson.loads(text))
        except orjson.JSONDecodeError:
            return
    else:
        for match in _NUMBER.finditer(text):
            yield float(match[0])


def _values(document: object) -> Iterator[float]:
    if isinstance(document, dict):
        for value in document.values():
            yield from _values(value)
    elif isinstance(document, list):
        for value in document:
            yield from _values(value)
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield float(document)
