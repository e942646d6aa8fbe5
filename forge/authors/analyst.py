"""Says what limits a right kernel, by the numbers that were measured, and gives one recommendation."""

from collections.abc import Sequence
from typing import Protocol

from forge.domain.at_floor import AT_FLOOR
from forge.domain.feedback import Metric, ShownDiagnosis, ShownTiming

NEAR_FLOOR = 0.5
"""Share of the floor in the measured time, from which on memory traffic is the limit. A kernel that moves every byte
twice is at one half."""
SHORT_US = 8.0
"""Time of a call in microseconds below which starting and finishing weigh as much as the work. Chosen; a start takes
some microseconds."""
MOST_METRICS = 16
"""Number of metrics that a diagnosis has, at most: the document's size is limited."""


class Analyst(Protocol):
    """Diagnoses a candidate that passed the gates, from its times and a profile if there is one."""

    def diagnose(self, timing: ShownTiming, profile: Sequence[Metric]) -> ShownDiagnosis:
        """Return the bottleneck, the metrics that show it, and one recommendation."""


def metrics_of(timing: ShownTiming, profile: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the metrics that a diagnosis may cite: the times, and as much of a profile as there is room for."""
    times = (
        Metric(id="timing.floor_share", value=timing.floor_share, unit="1"),
        Metric(id="timing.median_us", value=timing.median_us, unit="us"),
        Metric(id="timing.ratio", value=timing.ratio.ratio, unit="1"),
    )
    return (*times, *profile)[:MOST_METRICS]


class TimesAnalyst:
    """Diagnoses by the share of the floor alone. Without a profiler's counters nothing more is known."""

    def diagnose(self, timing: ShownTiming, profile: Sequence[Metric]) -> ShownDiagnosis:
        """Return a diagnosis that cites the measured time, the share of the floor, and the profile's metrics."""
        metrics = metrics_of(timing, profile)
        if timing.floor_share >= AT_FLOOR:
            return ShownDiagnosis(
                bottleneck="memory",
                metrics=metrics,
                recommendation="It is close to the floor: only fewer bytes help. Look for a value that is read or "
                "written twice, and for a wider type than the task asks for.",
            )
        if timing.median_us < SHORT_US:
            return ShownDiagnosis(
                bottleneck="launch",
                metrics=metrics,
                recommendation="A call is so short that starting it counts. Do less before the first byte is moved: "
                "no allocation that can be avoided, one kernel, no threads for little work.",
            )
        if timing.floor_share >= NEAR_FLOOR:
            return ShownDiagnosis(
                bottleneck="memory",
                metrics=metrics,
                recommendation="It moves about twice the bytes that it must. Keep a row in registers or in cache "
                "between its passes, and fuse the passes over it.",
            )
        return ShownDiagnosis(
            bottleneck=None,
            metrics=metrics,
            recommendation="It is far from the floor, so bytes aren't the limit. Try wider vectors, more independent "
            "accumulators, or more rows at once; change one of them and say which in the hypothesis.",
        )
