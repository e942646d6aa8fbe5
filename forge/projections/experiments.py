"""What was tried for an operation, and how it ended: failures are kept as carefully as successes."""

from collections.abc import Iterable

import orjson

from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED, ReasonCode
from forge.events import (
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateSubmitted,
    Event,
    KernelPromoted,
    PromotionDenied,
    TaskCreated,
)
from forge.events.plan import EarlierExperiment, ExperimentEnd
from forge.ledger.store import Ledger

TYPES = (
    *("CandidateSubmitted", "CandidateRejected", "BenchmarkRecorded", "BenchmarkFailed"),
    *("KernelPromoted", "PromotionDenied"),
)
LATEST = 8
"""How many are kept for a plan: an author reads a page, not an archive."""
LOOKED_AT = 64
"""How many of the latest runs are read for them; each costs a look-up by index."""
HYPOTHESIS_LIMIT = 160


def earlier_experiments(ledger: Ledger, op: str) -> tuple[EarlierExperiment, ...]:
    """The latest experiments on an operation that ended on evidence, newest run first."""
    tasks = {
        recorded.event.task_id: recorded.event.task
        for recorded in ledger.read(types=("TaskCreated",))
        if isinstance(recorded.event, TaskCreated) and recorded.event.task.op == op
    }
    started = (orjson.loads(row.payload) for row in ledger.rows(types=("RunStarted",)))
    runs = [(one["run_id"], tasks[one["task_id"]]) for one in started if one["task_id"] in tasks]
    found: list[EarlierExperiment] = []
    for run_id, task in reversed(runs[-LOOKED_AT:]):
        events = (recorded.event for recorded in ledger.read(correlation_id=run_id, types=TYPES))
        ended = conclude(run_id, task, events)
        if ended is not None:
            found.append(ended)
        if len(found) == LATEST:
            break
    return tuple(found)


def conclude(run_id: str, task: Task, events: Iterable[Event]) -> EarlierExperiment | None:
    """How a run's experiment ended, by its latest decision; None if nothing was decided about the candidate."""
    hypothesis: str | None = None
    speedup: float | None = None
    end: tuple[ExperimentEnd, ReasonCode | None] | None = None
    for event in events:
        match event:
            case CandidateSubmitted():
                hypothesis = one_line(event.hypothesis)
            case BenchmarkRecorded():
                speedup = _speedup(event)
            case BenchmarkFailed():
                speedup, end = _speedup(event), ("not_faster", event.reason.code)
            case CandidateRejected():
                end = ("rejected", event.reason.code)
            case PromotionDenied():
                end = ("denied", event.reason.code)
            case KernelPromoted():
                end = ("promoted", None)
            case _:
                pass
    if end is None or end[1] in UNDECIDED:
        return None
    return EarlierExperiment(
        run_id=run_id, family=task.family, ended=end[0], reason=end[1], speedup=speedup, hypothesis=hypothesis
    )


def _speedup(event: BenchmarkRecorded | BenchmarkFailed) -> float | None:
    """Over the baseline that counted, at the first workload: the public one."""
    first = event.workloads[0].speedups if event.workloads else ()
    return next((one.interval.ratio for one in first if one.baseline == event.baseline_used), None)


def one_line(untrusted_text: str | None) -> str | None:
    """An author's words as a table's cell can hold them: one line, no markup, cut short."""
    if untrusted_text is None:
        return None
    plain = "".join(character if character.isprintable() else " " for character in untrusted_text)
    for mark, harmless in (("|", "/"), ("`", "'"), ("<", "("), (">", ")"), ("[", "("), ("]", ")")):
        plain = plain.replace(mark, harmless)
    plain = " ".join(plain.split())
    return plain if len(plain) <= HYPOTHESIS_LIMIT else f"{plain[: HYPOTHESIS_LIMIT - 3]}..."
