"""Estimates the spread between sessions: what differs from one measurement to the next beyond both intervals.

An interval covers what fresh process pairs draw anew within one session. Let D be the difference between the log
ratios of a kernel's two measurements, and s1, s2 their standard errors. Let tau be the standard deviation between
sessions. Then E[D^2] = s1^2 + s2^2 + 2 tau^2, and the estimate of tau is by the method of moments:

    tau^2 = max(0, mean(D^2 - s1^2 - s2^2) / 2)
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from forge.lab.timing.student_t import t_975

if TYPE_CHECKING:
    from forge.domain.replication import ReplicatedSpeedup

FEWEST_REPLICATIONS = 10
"""Number of replications from which the spread counts as known. By the chi-square distribution with ten degrees of
freedom the 95 % interval of tau is then 0.70 to 1.75 times the estimate. With five it would be 0.62 to 2.45 times."""
NORMAL_975 = 1.959964
"""The 97.5 % quantile of the normal distribution."""


class RatioInterval(Protocol):
    """A ratio and its 95 % interval."""

    @property
    def ratio(self) -> float: ...  # noqa: D102 (a number of a protocol)
    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


class SpeedupPair(Protocol):
    """Two measurements of one regime, over one baseline: each with the process pairs behind its interval."""

    @property
    def first(self) -> RatioInterval: ...  # noqa: D102
    @property
    def first_pairs(self) -> int: ...  # noqa: D102
    @property
    def second(self) -> RatioInterval: ...  # noqa: D102
    @property
    def second_pairs(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class SessionSpread:
    """The spread between sessions, estimated from replications."""

    tau: float
    """Standard deviation between sessions of a log ratio."""
    replications: int

    @property
    def difference(self) -> float:
        """The relative difference that sessions alone make between two measurements in at most 5 % of cases."""
        return math.expm1(NORMAL_975 * math.sqrt(2) * self.tau)


def session_spread(comparisons: Sequence[SpeedupPair]) -> SessionSpread | None:
    """Estimate the spread from at least `FEWEST_REPLICATIONS` comparisons; None: it is unknown."""
    if len(comparisons) < FEWEST_REPLICATIONS:
        return None
    excess = statistics.fmean(
        log_difference(one) ** 2
        - standard_error(one.first, one.first_pairs) ** 2
        - standard_error(one.second, one.second_pairs) ** 2
        for one in comparisons
    )
    return SessionSpread(tau=math.sqrt(max(0.0, excess / 2)), replications=len(comparisons))


def log_difference(comparison: SpeedupPair) -> float:
    """Return the log of the second ratio over the first."""
    return math.log(comparison.second.ratio / comparison.first.ratio)


def standard_error(interval: RatioInterval, pairs: int) -> float:
    """Return the standard error of the mean log ratio behind an interval over this many process pairs."""
    return math.log(interval.high / interval.low) / 2 / t_975(pairs - 1)


def agree(comparison: "ReplicatedSpeedup") -> bool:
    """Return whether the second measurement bears out the first, with the spread between sessions allowed.

    The two intervals overlap, or the second lies above the first while the kernel's own time is the same. Then the
    baseline was slower: torch.compile may choose a slower program. What is on offer, the first ratio, is the smaller.
    """
    first, second, allowed = comparison.first, comparison.second, math.log1p(comparison.session_spread)
    if math.log(first.low / second.high) > allowed:
        return False
    same_kernel = comparison.kernel_ratio is not None and abs(math.log(comparison.kernel_ratio)) <= allowed
    return same_kernel or math.log(second.low / first.high) <= allowed
