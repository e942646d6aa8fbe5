"""Ranks drafts by paired windows, and drops those that lose by more than their intervals: successive halving.

A window of a draft is paired with the reference's window of the same round. A draft's log ratio is the median of a
process's windows, and the mean over processes. Windows of one process share addresses and code layout. So a draft is
dropped only if it loses by more than two processes of one kernel differ.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from forge.domain.authoring import FailedTrial, TimedTrial
from forge.domain.evidence import Interval
from forge.lab.timing.paired_interval import MEDIANS_ERROR
from forge.lab.timing.student_t import t_975

RUNGS = (4, 8, 16)
"""Number of windows of one process after which the slow drafts are dropped; after the last the process ends. Each
rung doubles the windows, as in successive halving."""
FINAL_WINDOWS = 12
"""Number of windows of each process in a final screening, which drops no draft. A benchmark by the host's clock has
as many rounds by default."""
FINAL_PROCESSES = 5
"""Number of processes of a final screening: as many as a benchmark has pairs by default."""
NORMAL_SPREAD = 1.4826
"""Ratio of the standard deviation to the median distance from the median, for normal noise."""
LEAST_NS = 1.0
"""Time of a window's work in nanoseconds, at least: the clock's resolution. Noise of the path may exceed the work of
an empty kernel."""


@dataclass(frozen=True)
class Paired:
    """One window of a draft and the reference's window of the same round: nanoseconds of a call."""

    own_ns: float
    reference_ns: float

    @property
    def log_ratio(self) -> float:
        """Log of the reference's time over the draft's."""
        return math.log(max(LEAST_NS, self.reference_ns) / max(LEAST_NS, self.own_ns))


Round = Callable[[Sequence[int]], Mapping[int, Paired | FailedTrial]]
"""Times each of the named drafts once beside the reference."""


@dataclass
class Race:
    """The windows of all drafts of a screening, by process."""

    between_processes: float
    """Standard deviation of a log ratio that the process alone makes; 0 if all drafts share one."""
    windows: dict[int, list[list[Paired]]] = field(default_factory=dict)
    failed: dict[int, FailedTrial] = field(default_factory=dict)

    def run(self, members: Sequence[int], measure: Round, *, final: bool) -> None:
        """Measure drafts in the processes that are open now; those that failed before are left out."""
        alive = [place for place in members if place not in self.failed]
        for place in alive:
            self.windows.setdefault(place, []).append([])
        done = 0
        for rung in (FINAL_WINDOWS,) if final else RUNGS:
            for _ in range(rung - done):
                self._take(measure(alive))
                alive = [place for place in alive if place not in self.failed]
            done = rung
            alive = alive if final else self.kept(alive)

    def _take(self, measured: Mapping[int, Paired | FailedTrial]) -> None:
        for place, one in measured.items():
            if isinstance(one, FailedTrial):
                self.failed[place] = one
            else:
                self.windows[place][-1].append(one)

    def kept(self, alive: Sequence[int]) -> list[int]:
        """Return the drafts that don't lose by more than their intervals to the best of all drafts so far."""
        ends = {place: self._ends(place) for place in self.windows if place not in self.failed}
        best = max((low for low, _ in ends.values()), default=-math.inf)
        return [place for place in alive if ends[place][1] >= best]

    def _ends(self, place: int) -> tuple[float, float]:
        """Return the ends of a draft's interval, for which windows of one process say too little of the process."""
        mean, error = self.estimate(place)
        half = t_975(self._degrees(place)) * math.hypot(error, self.between_processes)
        return mean - half, mean + half

    def _degrees(self, place: int) -> int:
        processes = [rounds for rounds in self.windows[place] if rounds]
        return max(1, (len(processes) if len(processes) > 1 else len(processes[0])) - 1)

    def estimate(self, place: int) -> tuple[float, float]:
        """Return the log ratio and its standard error: the mean over processes, or the median of the only one.

        Within a process both are taken from medians, since other work on the machine disturbs single windows by much.
        """
        processes = [[one.log_ratio for one in rounds] for rounds in self.windows[place] if rounds]
        medians = [statistics.median(ratios) for ratios in processes]
        if len(medians) > 1:
            return statistics.fmean(medians), statistics.stdev(medians) / math.sqrt(len(medians))
        (windows,) = processes
        apart = statistics.median(abs(ratio - medians[0]) for ratio in windows)
        return medians[0], MEDIANS_ERROR * NORMAL_SPREAD * apart / math.sqrt(len(windows))

    def result(self, place: int) -> TimedTrial | FailedTrial:
        """Return what became of a draft."""
        if place in self.failed:
            return self.failed[place]
        processes = [rounds for rounds in self.windows[place] if rounds]
        mean, error = self.estimate(place)
        half = t_975(self._degrees(place)) * error
        return TimedTrial(
            speedup=Interval(ratio=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half)),
            log_mean=mean,
            log_error=error,
            windows=sum(map(len, processes)),
            processes=len(processes),
            median_ns=max(LEAST_NS, statistics.median(one.own_ns for rounds in processes for one in rounds)),
        )
