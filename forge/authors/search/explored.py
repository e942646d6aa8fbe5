"""What a search has seen so far, folded from its log: the trials, and the climb that it is on.

A climb begins with drawn settings and goes on with neighbours of the fastest ones. After a number of batches without
gain the next climb begins somewhere else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from forge.domain.authoring import Judged, LogEntry, Missed, Screened, Setting, TimedTrial, Trial
from forge.domain.digest import Digest

GAIN = math.log(1.005)
"""Log ratio by which a batch must raise a climb's best to count as progress. Less is noise of a few windows."""
SURE_ERRORS = 6.0
"""Number of standard errors by which the final screening's mean must exceed the least gain. The best of hundreds of
equal settings looks faster by chance, and five processes say little of their own spread. With Student's t of four
degrees of freedom, six errors are exceeded with a chance of 0.2 %."""
LEAST_GAIN = math.log(1.01)
"""Log ratio of the smallest gain that is worth a candidate's minute of gates and clock. Chosen, 1 %; a smaller one
ends a climb later."""


@dataclass
class Climb:
    """One climb: its timed settings with their log ratios to the reference."""

    found: dict[Digest, tuple[float, Setting]] = field(default_factory=dict)
    best: float = -math.inf
    stale: int = 0
    """Number of batches since the last progress."""

    def fastest(self, count: int) -> list[Setting]:
        """Return the fastest settings, the fastest first; equal times are ordered by the setting's digest."""
        ranked = sorted(self.found.items(), key=lambda one: (-one[1][0], one[0]))
        return [setting for _, (_, setting) in ranked[:count]]


@dataclass
class Explored:
    """The state of a search."""

    seen: dict[Digest, Setting] = field(default_factory=dict)
    """Every setting that was screened, with those that failed."""
    timed: dict[Digest, tuple[float, Setting]] = field(default_factory=dict)
    climb: Climb = field(default_factory=Climb)
    final: Screened | None = None
    judged: list[Judged] = field(default_factory=list)
    reference_failed: str | None = None
    missed: int = 0
    """Number of steps in a row that the machine couldn't carry out, up to now."""
    why_missed: str = ""
    """Why the last of them couldn't be carried out."""
    done: int = 0
    """Number of entries that the machine could carry out; the next step's random numbers follow from it."""


def explored(log: Sequence[LogEntry], patience: int) -> Explored:
    """Return what a search has tried, from its log.

    `patience` is the number of batches without progress before a new climb.
    """
    state = Explored()
    for entry in log:
        if isinstance(entry, Missed):
            state.missed, state.why_missed = state.missed + 1, entry.reason.message
            continue
        state.missed, state.done = 0, state.done + 1
        match entry:
            case Screened(reference_failed=reason) if reason is not None:
                state.reference_failed = f"{reason.code}: {reason.message}"
            case Screened(final=True):
                state.final = entry
            case Screened(trials=trials):
                _take_batch(state, trials, patience)
            case Judged():
                state.judged.append(entry)
    return state


def _take_batch(state: Explored, trials: Sequence[Trial], patience: int) -> None:
    climb = state.climb
    for trial in trials:
        if trial.setting is None:
            continue
        name = trial.setting.sha256
        state.seen[name] = trial.setting
        if isinstance(trial.result, TimedTrial):
            climb.found[name] = state.timed[name] = (trial.result.log_mean, trial.setting)
    best = max((ratio for ratio, _ in climb.found.values()), default=-math.inf)
    climb.stale = 0 if best > climb.best + GAIN else climb.stale + 1
    climb.best = max(climb.best, best)
    if climb.stale >= patience:
        state.climb = Climb()


def sure(final: Screened) -> list[Trial]:
    """Return the trials of a final screening that are faster than the reference beyond chance, the fastest first."""
    timed = [(one.result.log_mean, one) for one in final.trials if isinstance(one.result, TimedTrial)]
    beyond = [(mean, one) for mean, one in timed if is_sure(one.result)]
    return [one for _, one in sorted(beyond, key=lambda found: (-found[0], found[1].draft))]


def is_sure(result: object) -> bool:
    """Return whether a trial's mean exceeds the least gain by enough standard errors."""
    return isinstance(result, TimedTrial) and result.log_mean - SURE_ERRORS * result.log_error > LEAST_GAIN
