"""The templates of briefs and starting points, and the forms in which they show numbers."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from forge.domain.one_line import one_line
from forge.pipeline.fence import fenced

_PACKAGE = Path(__file__).parent.parent
SHORTEST_US = 0.01
"""Shortest time that is shown as a number, in microseconds; shorter ones are shown as below it."""
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
"""Factors with their prefixes for large numbers, the largest first."""


@cache
def environment() -> Environment:
    """Return the environment of the templates. It is made once in a process."""
    environment = Environment(
        loader=FileSystemLoader([_PACKAGE / "prompts", _PACKAGE / "languages"]),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 (Markdown for an author, never HTML)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"fenced": fenced, "cell": one_line}
    environment.filters |= {"amount": amount, "us": microseconds, "interval": interval}
    return environment


def amount(value: float, unit: str) -> str:
    """Return a number of bytes or flops with a decimal prefix: 33554432 B is 33.6 MB."""
    for size, prefix in _UNITS:
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:g} {unit}"


def microseconds(value_us: float) -> str:
    """Return a time with three digits; a time that would round to zero is shown as below the smallest one."""
    return f"{value_us:.3g} us" if value_us >= SHORTEST_US else f"under {SHORTEST_US:g} us"


def interval(figures: Mapping[str, float | None]) -> str:
    """Return a speedup with its interval as text; empty if nothing was timed."""
    ratio, low, high = (figures[name] for name in ("speedup", "low", "high"))
    return "" if ratio is None else f"{ratio:.2f}x ({low:.2f} to {high:.2f})"
