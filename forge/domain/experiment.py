"""Experiments: one change to a kernel, and how it ended."""

from typing import Literal

from forge.domain.axes import Ended
from forge.domain.digest import Value
from forge.domain.evidence import Interval
from forge.domain.policy import BaselineKind
from forge.domain.verdict import UNDECIDED, ReasonCode

Against = Literal["parent"] | BaselineKind
"""Comparison of an experiment: its parent candidate, the kernel promoted at that time, or a baseline."""


class Conclusion(Value):
    """How an experiment ended, and the figure that decided it."""

    ended: Ended
    reason: ReasonCode | None
    """Reason why a phase refused the candidate; None if none did."""
    against: Against | None
    """Comparison that the speedup is over; None if nothing was timed."""
    speedup: Interval | None
    """Time of the comparison divided by the candidate's, with its 95 % interval."""


def end_of(speedup: Interval) -> Ended:
    """Return the end that a measured speedup shows. An interval that includes 1 is no change."""
    if speedup.low > 1:
        return "improved"
    return "regressed" if speedup.high < 1 else "no_change"


def end_of_refusal(code: ReasonCode, *, stage: str) -> Ended | None:
    """Return the end that a refusal shows; None if the refusal says nothing about the candidate."""
    if code in UNDECIDED or stage == "submit":
        return None
    return "build_failed" if stage == "build" or code == "COMPILE_ERROR" else "incorrect"


def over(interval: Interval, other: Interval) -> Interval:
    """Return the ratio of two speedups over one baseline, with an interval from the worst case to the best.

    Its low end is above 1 if and only if `interval` lies wholly above `other`.
    """
    return Interval(ratio=interval.ratio / other.ratio, low=interval.low / other.high, high=interval.high / other.low)
