"""From paired samples to a ratio with its interval, and the rule that reads it.

The unit is the process pair, not the call: calls of one process share its addresses, its code layout and its
clock state, so more of them only narrow the interval around a value that is off by the process's own effect
(docs/measurement.md). R_p is the median over rounds of log(t_baseline / t_candidate) in pair p; the interval is
mean(R_p) +- t(0.975, k - 1) sd(R_p) / sqrt(k).
"""

import math
import statistics
from collections.abc import Sequence

from forge.domain.evidence import Interval, Timing
from forge.domain.policy import TimingAuthority

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; any statistics text, to three decimals.
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def t_975(degrees: int) -> float:
    """The 97.5 % quantile of Student's t; beyond 30 degrees the value for 30, which is on the safe side."""
    return _T_975[min(degrees, len(_T_975)) - 1]


def pair_ratios(baseline_ns: Sequence[Sequence[float]], other_ns: Sequence[Sequence[float]]) -> list[float]:
    """R_p for each process pair, as a log ratio; both sides have the same pairs and rounds, all times above 0."""
    return [
        statistics.median(math.log(b / o) for b, o in zip(b_rounds, o_rounds, strict=True))
        for b_rounds, o_rounds in zip(baseline_ns, other_ns, strict=True)
    ]


def interval(log_ratios: Sequence[float]) -> Interval:
    """The mean of at least two pairs' log ratios with its two-sided 95 % interval, as ratios."""
    count = len(log_ratios)
    mean = statistics.fmean(log_ratios)
    half = t_975(count - 1) * statistics.stdev(log_ratios) / math.sqrt(count)
    return Interval(ratio=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def summarise(samples_ns: Sequence[Sequence[float]], method: TimingAuthority) -> Timing:
    """Median, percentiles and spread over every round of every pair."""
    flat = sorted(value for rounds in samples_ns for value in rounds)
    median = statistics.median(flat)
    deciles = statistics.quantiles(flat, n=10, method="inclusive")
    return Timing(
        n=len(flat),
        median_ns=median,
        p10_ns=min(deciles[0], median),  # interpolation may round past it in the last bit
        p90_ns=max(deciles[-1], median),
        mad_ns=statistics.median(abs(value - median) for value in flat),
        method=method,
    )


def within_band(control: Interval, half_width: float) -> bool:
    """Whether the baseline, measured against itself, is itself: its whole interval lies within 1 +- half_width."""
    return control.low >= 1 - half_width and control.high <= 1 + half_width
