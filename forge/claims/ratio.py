"""Checks a ratio and its interval against those that were measured, of a kernel or of a model."""

from collections.abc import Iterator

from forge.claims.number import decimals_of, rounds_to
from forge.claims.sentence import written
from forge.claims.spoken import SpokenFigure
from forge.claims.verdict import Fault, fault
from forge.domain.evidence import Interval


def faults_of_ratio(figure: SpokenFigure, found: Interval, over: str) -> Iterator[Fault]:
    """Yield the faults of a ratio over one baseline."""
    true = f"{written(found.low)} to {written(found.high)}x"
    if not bears_out(found, figure):
        above = figure.value > found.ratio
        how = "is above the ratio" if above else "isn't what was measured"
        why = f"{figure.said!r} {how}: measured were {found.ratio:.3f}x ({true}) over {over}"
        yield fault("overstated" if above else "not_measured", why)
    elif figure.least and figure.value > found.low and not rounds_to(found.low, figure.number):
        yield fault(
            "overstated", f"{figure.said!r} is said as the least: the interval begins at {written(found.low)}x"
        )
    if figure.interval is None:
        yield fault("no_interval", f"{figure.said!r} comes without its 95 % interval, {true}")
    elif not (rounds_to(found.low, figure.interval[0]) and rounds_to(found.high, figure.interval[1])):
        yield fault("wrong_interval", f"the interval isn't {' to '.join(figure.interval)}x: over {over} it is {true}")


def bears_out(found: Interval, figure: SpokenFigure) -> bool:
    """Return whether a ratio and its interval bear out a figure.

    The number may be rounded in its last digit, and be less than the ratio as far as the lower end.
    A number above the ratio lies in the better half of the interval: no event holds it.
    """
    rounded = figure.value <= found.ratio or rounds_to(found.ratio, figure.number)
    return rounded and figure.value <= found.high and found.low <= figure.value + 10.0 ** -decimals_of(figure.number)
