"""Computes a ratio with its interval from paired samples, and checks it against a band.

The unit is the process pair, not the call. Calls of one process share its addresses, its code layout and its clock
state. So more calls only narrow the interval around a value that is off by the process's own effect
(docs/measurement.md). R_p is the median over rounds of log(t_baseline / t_candidate) in pair p; the interval is
mean(R_p) +- t(0.975, k - 1) sd(R_p) / sqrt(k).
"""

import math
import statistics
from collections.abc import Sequence

from forge.domain.evidence import Interval, Timing
from forge.domain.policy import TimingAuthority
from forge.lab.timing.student_t import t_975

MEDIANS_ERROR = math.sqrt(math.pi / 2)
"""Ratio of a median's standard error to a mean's, for normal noise."""


def standard_error(rounds: Sequence[float]) -> float:
    """Return the standard error of the median of at least two rounds, in the rounds' unit."""
    return MEDIANS_ERROR * statistics.stdev(rounds) / math.sqrt(len(rounds))


def pair_ratios(baseline_ns: Sequence[Sequence[float]], other_ns: Sequence[Sequence[float]]) -> list[float]:
    """Return R_p as a log ratio for each process pair.

    Both sides have the same pairs and rounds; all times are above 0.
    """
    return [
        statistics.median(math.log(b / o) for b, o in zip(b_rounds, o_rounds, strict=True))
        for b_rounds, o_rounds in zip(baseline_ns, other_ns, strict=True)
    ]


def interval(log_ratios: Sequence[float]) -> Interval:
    """Return the mean of at least two pairs' log ratios with its two-sided 95 % interval, as ratios."""
    count = len(log_ratios)
    mean = statistics.fmean(log_ratios)
    half = t_975(count - 1) * statistics.stdev(log_ratios) / math.sqrt(count)
    return Interval(ratio=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def summarise(samples_ns: Sequence[Sequence[float]], method: TimingAuthority) -> Timing:
    """Return median, percentiles and spread over every round of every pair."""
    flat = sorted(value for rounds in samples_ns for value in rounds)
    median = statistics.median(flat)
    deciles = statistics.quantiles(flat, n=10, method="inclusive")
    return Timing(
        n=len(flat),
        median_ns=median,
        p10_ns=min(deciles[0], median),  # interpolation may exceed the median in the last bit
        p90_ns=max(deciles[-1], median),
        mad_ns=statistics.median(abs(value - median) for value in flat),
        method=method,
    )


def within_band(control: Interval, half_width: float) -> bool:
    """Return whether the baseline agrees with itself: the control's whole interval lies within 1 +- half_width."""
    return control.low >= 1 - half_width and control.high <= 1 + half_width
