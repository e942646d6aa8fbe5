"""The early stop of a benchmark: refuses a candidate after the first process pair, if no noise could save it.

The promotion rule asks that no process pair be lost. A first pair is lost beyond doubt if its most favourable ratio
stays below `LIMIT`. That ratio counts all noise of its rounds and its control in the candidate's favour. What isn't
beyond doubt is measured in full. So a stop refuses only what the rule would refuse, and noise makes it rarer.
"""

import math
import statistics
from dataclasses import dataclass

from forge.domain.contender import ContenderStanding
from forge.domain.digest import sha256
from forge.domain.early_stop import LIMIT, STANDARD_ERRORS, EarlyStop
from forge.domain.policy import CONTROL_KIND, BaselineKind
from forge.domain.task import Task
from forge.domain.verdict import Reason
from forge.lab.timing.cpu_processes import CANDIDATE, CONTROL
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.paired_interval import standard_error
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline.samples import Samples, render_samples
from forge.pipeline.timings import kinds_of


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """A measurement that ended after its first process pair."""

    samples: Samples
    figures: EarlyStop
    claims: dict[str, float]
    contenders: tuple[ContenderStanding, ...] = ()

    @property
    def reason(self) -> Reason:
        """Why the candidate is refused, with the values."""
        found = self.figures
        message = (
            f"{found.ratio:.2f}x over {found.baseline} in the first process pair, and {found.most_favourable:.2f}x "
            "with all noise seen there in its favour. No pair may be lost, and further pairs couldn't change that"
        )
        return Reason(code="TOO_SLOW", message=message)


def has_no_chance(task: Task, attempt: SlopeSamples | ReplaySamples) -> bool:
    """Return whether the first process pair of an attempt leaves no chance of a promotion."""
    return early_stop(task, attempt) is not None


def early_stop(task: Task, attempt: SlopeSamples | ReplaySamples) -> EarlyStop | None:
    """Return the figures of an attempt whose only process pair rules out a promotion; otherwise None."""
    samples = Samples.of(attempt)
    if len(attempt.pairs) != 1 or not samples.usable or _disturbed(attempt):
        return None
    baseline = _to_beat(task, samples)
    if baseline is None:
        return None
    (candidate,), (to_beat,) = samples.per_call_ns(CANDIDATE), samples.per_call_ns(baseline)
    logs, control_logs = _logs(to_beat, candidate), _control_logs(samples)
    errors, control = (standard_error(logs), standard_error(control_logs)), statistics.median(control_logs)
    ratio = statistics.median(logs)
    most_favourable = math.exp(ratio + STANDARD_ERRORS * sum(errors) + abs(control))
    if not most_favourable < LIMIT:
        return None
    return EarlyStop(
        shape=task.shape,
        method=samples.method,
        protocol=samples.protocol,
        baseline=baseline,
        baseline_median_ns=statistics.median(to_beat),
        candidate_median_ns=statistics.median(candidate),
        ratio=math.exp(ratio),
        error=errors[0],
        control=math.exp(control),
        control_error=errors[1],
        most_favourable=most_favourable,
        limit=LIMIT,
        rounds=len(logs),
        gpu_s=attempt.device_ns / 1e9 if isinstance(attempt, ReplaySamples) else None,
        samples_sha256=sha256(render_samples(samples)),
    )


def _disturbed(attempt: SlopeSamples | ReplaySamples) -> bool:
    """Return whether blocks were left out: what disturbed the device may have slowed the others."""
    return isinstance(attempt, ReplaySamples) and attempt.dropped > 0


def _to_beat(task: Task, samples: Samples) -> BaselineKind | None:
    """Return the task's baseline, else the fastest in this pair; None if the task's wasn't measured."""
    kinds = kinds_of(samples)
    if task.baseline != "best":
        return task.baseline if task.baseline in kinds else None
    return min(kinds, key=lambda kind: (statistics.median(samples.per_call_ns(kind)[0]), kind))


def _control_logs(samples: Samples) -> list[float]:
    (eager,), (control,) = samples.per_call_ns(CONTROL_KIND), samples.per_call_ns(CONTROL)
    return _logs(eager, control)


def _logs(over: list[float], side: list[float]) -> list[float]:
    return [math.log(one / other) for one, other in zip(over, side, strict=True)]
