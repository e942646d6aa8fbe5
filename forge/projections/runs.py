"""Folds the full state of each run: its stage, and what its next phase may build on.

A run is `planned` from its start; `plan` says whether the plan itself was accepted. Evidence belongs to exact bytes:
a new submission in the same run clears what was recorded about the earlier one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from forge.domain.verdict import UNDECIDED
from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded
from forge.events.benchmark import BenchmarkErrored, BenchmarkFailed, BenchmarkRecorded
from forge.events.candidate import (
    CandidateDuplicated,
    CandidateRejected,
    CandidateSubmitted,
    ClaimAssessed,
    ClaimRecorded,
)
from forge.events.create import TaskCreated
from forge.events.plan import PlanAccepted
from forge.events.promote import KernelPromoted, PromotionDenied
from forge.events.prompt import PromptRendered
from forge.events.run import RunAborted, RunSealed, RunStarted
from forge.events.verify import CandidateVerified, VerificationErrored
from forge.events.work import LastPhase, WorkRequested, WorkWithdrawn
from forge.projections.fold import holds

Stage = Literal[
    "planned",
    "prompt_ready",
    "candidate_ready",
    "verified",
    "benchmarked",
    "promoted",
    "denied",
    "rejected",
    "failed",
    "aborted",
]
Phase = Literal["submit", "verify", "benchmark", "promote"]

STAGE_AFTER: dict[type[Event], Stage] = {
    RunStarted: "planned",
    PlanAccepted: "planned",
    PromptRendered: "prompt_ready",
    CandidateSubmitted: "candidate_ready",
    CandidateRejected: "rejected",
    CandidateVerified: "verified",
    VerificationErrored: "candidate_ready",
    BenchmarkRecorded: "benchmarked",
    BenchmarkFailed: "failed",
    BenchmarkErrored: "verified",
    KernelPromoted: "promoted",
    PromotionDenied: "denied",
    RunAborted: "aborted",
}
"""Event class -> the stage of a run after it."""
PHASE_OF: dict[type[Event], Phase] = {
    CandidateSubmitted: "submit",
    CandidateDuplicated: "submit",
    CandidateVerified: "verify",
    CandidateRejected: "verify",
    VerificationErrored: "verify",
    BenchmarkRecorded: "benchmark",
    BenchmarkFailed: "benchmark",
    BenchmarkErrored: "benchmark",
    KernelPromoted: "promote",
    PromotionDenied: "promote",
}
"""Event class -> the phase that it is an attempt of."""
KEPT_IN: dict[type[Event], str] = {
    PlanAccepted: "plan",
    PromptRendered: "prompt",
    CandidateRejected: "rejection",
    CandidateVerified: "verified",
    VerificationErrored: "error",
    BenchmarkRecorded: "benchmark",
    BenchmarkFailed: "failure",
    BenchmarkErrored: "error",
    KernelPromoted: "promotion",
    PromotionDenied: "promotion",
    RunSealed: "end",
    RunAborted: "end",
}
"""Event class -> the field of a run's state that keeps the newest event."""
WAITING: dict[LastPhase, frozenset[Stage]] = {
    "verify": frozenset({"candidate_ready"}),
    "bench": frozenset({"candidate_ready", "verified"}),
    "promote": frozenset({"candidate_ready", "verified", "benchmarked"}),
}
"""Last phase that was requested -> stages of a run in which a phase of the request is still to be run."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Number of answers of each phase in this run, machine faults included."""

    submit: int = 0
    verify: int = 0
    benchmark: int = 0
    promote: int = 0

    def plus(self, phase: Phase | None) -> "Attempts":
        """Return the numbers with one more of `phase`."""
        return self if phase is None else replace(self, **{phase: getattr(self, phase) + 1})


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of one run after some events of the ledger."""

    run_id: str
    task_id: str
    started: Recorded[RunStarted]
    state: Stage = "planned"
    sealed: bool = False
    task: Recorded[TaskCreated] | None = None
    plan: Recorded[PlanAccepted] | None = None
    prompt: Recorded[PromptRendered] | None = None
    submitted: Recorded[CandidateSubmitted] | None = None
    verified: Recorded[CandidateVerified] | None = None
    benchmark: Recorded[BenchmarkRecorded] | None = None
    promotion: Recorded[KernelPromoted | PromotionDenied] | None = None
    rejection: Recorded[CandidateRejected] | None = None
    """The latest refusal, at submission or on evidence."""
    failure: Recorded[BenchmarkFailed] | None = None
    error: Recorded[VerificationErrored | BenchmarkErrored] | None = None
    """The latest fault of the machine."""
    request: Recorded[WorkRequested] | None = None
    """The request that no worker has answered yet."""
    end: Recorded[RunSealed | RunAborted] | None = None
    claims: tuple[Recorded[ClaimRecorded], ...] = ()
    """Claims about the candidate."""
    assessments: tuple[Recorded[ClaimAssessed], ...] = ()
    attempts: Attempts = Attempts()
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class RunsState:
    """The states of all runs after some events of the ledger. A state that was returned never changes."""

    runs: dict[str, RunState] = field(default_factory=dict)
    tasks: dict[str, Recorded[TaskCreated]] = field(default_factory=dict)
    taskless: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Task id -> runs that started before their task was recorded."""

    def copied(self) -> "RunsState":
        """Return a copy that `take` may change."""
        return RunsState(runs=dict(self.runs), tasks=dict(self.tasks), taskless=dict(self.taskless))


EMPTY = RunsState()
"""State before the first event."""


def fold(state: RunsState, events: Iterable[Recorded[Event]]) -> RunsState:
    """Return the runs after `events`, in one pass; `state` isn't changed. Raises LedgerCorrupt."""
    own = state.copied()
    for recorded in events:
        take(own, recorded)
    return own


def take(own: RunsState, recorded: Recorded[Event]) -> None:
    """Extend a state that no other caller holds by one event; raise LedgerCorrupt if it contradicts earlier ones."""
    if holds(recorded, TaskCreated):
        _take_task(own, recorded)
    elif holds(recorded, RunStarted):
        _take_start(own, recorded)
    else:
        run_id = run_of(recorded.event)
        if run_id is None:
            return
        if run_id not in own.runs:
            raise LedgerCorrupt(f"event {recorded.seq} names run {run_id!r}: expected one that started before")
        own.runs[run_id] = _after(own.runs[run_id], recorded)


def _take_task(own: RunsState, recorded: Recorded[TaskCreated]) -> None:
    task = own.tasks.setdefault(recorded.event.task_id, recorded)
    for run_id in own.taskless.pop(recorded.event.task_id, ()):
        own.runs[run_id] = replace(own.runs[run_id], task=task)


def _take_start(own: RunsState, recorded: Recorded[RunStarted]) -> None:
    run_id, task_id = recorded.event.run_id, recorded.event.task_id
    if run_id in own.runs:
        raise LedgerCorrupt(f"event {recorded.seq} starts run {run_id!r} a second time: expected a new run")
    task = own.tasks.get(task_id)
    if task is None:
        own.taskless[task_id] = (*own.taskless.get(task_id, ()), run_id)
    own.runs[run_id] = RunState(run_id=run_id, task_id=task_id, started=recorded, task=task, last_seq=recorded.seq)


def run_of(event: Event) -> str | None:
    """Return the run of an event; None if it belongs to no run."""
    run_id: str | None = getattr(event, "run_id", None)
    return run_id


def stage_after(stage: Stage, event: Event, *, sealed: bool) -> Stage:
    """Return a run's stage after `event`. No event follows an abort or the seal."""
    if sealed or stage == "aborted":
        return stage
    if isinstance(event, CandidateRejected) and event.stage == "submit":
        return stage
    if isinstance(event, BenchmarkFailed) and event.reason.code in UNDECIDED:
        return "verified"
    return STAGE_AFTER.get(type(event), stage)


def phase_of(event: Event) -> Phase | None:
    """Return the phase that `event` is an attempt of; None if it is none."""
    if isinstance(event, CandidateRejected) and event.stage == "submit":
        return "submit"
    return PHASE_OF.get(type(event))


def _after(run: RunState, recorded: Recorded[Event]) -> RunState:
    phase = phase_of(recorded.event)
    if run.submitted and phase in {"verify", "benchmark", "promote"}:
        _check_candidate(run, recorded, run.submitted.event.candidate)
    if isinstance(recorded.event, KernelPromoted):
        _check_author(run, recorded.seq, recorded.event)
    moved = replace(
        run,
        state=stage_after(run.state, recorded.event, sealed=run.sealed),
        attempts=run.attempts.plus(phase),
        last_seq=recorded.seq,
    )
    return _with_request(_with_event(moved, recorded), recorded)


def _check_candidate(run: RunState, recorded: Recorded[Event], submitted: str) -> None:
    candidate = getattr(recorded.event, "candidate", submitted)
    if candidate != submitted:
        raise LedgerCorrupt(
            f"event {recorded.seq} judges candidate {candidate!r} in run {run.run_id!r}: "
            f"expected {submitted!r}, which it submitted"
        )


def _check_author(run: RunState, seq: int, promoted: KernelPromoted) -> None:
    """Raise LedgerCorrupt unless the run's author submitted what is promoted, under the run's plan."""
    author = run.submitted.event.author if run.submitted else None
    skills = tuple(skill.id for skill in run.plan.event.skills) if run.plan else ()
    if (promoted.author, promoted.skills) != (author, skills):
        raise LedgerCorrupt(
            f"event {seq} promotes a candidate of author {promoted.author!r} with skills {promoted.skills}: "
            f"expected those of run {run.run_id!r}, {author!r} and {skills}"
        )


def _with_event(run: RunState, recorded: Recorded[Event]) -> RunState:
    if holds(recorded, CandidateSubmitted):
        return _with_submission(run, recorded)
    if holds(recorded, ClaimRecorded):
        return replace(run, claims=(*run.claims, recorded))
    if holds(recorded, ClaimAssessed):
        return replace(run, assessments=(*run.assessments, recorded))
    name = KEPT_IN.get(type(recorded.event))
    if name is None:
        return run
    kept: dict[str, Any] = {name: recorded}  # Any: an event of the field's type
    return replace(run, sealed=run.sealed or isinstance(recorded.event, RunSealed), **kept)


def _with_submission(run: RunState, recorded: Recorded[CandidateSubmitted]) -> RunState:
    candidate = recorded.event.candidate
    return replace(
        run,
        submitted=recorded,
        verified=None,
        benchmark=None,
        promotion=None,
        rejection=None,
        failure=None,
        error=None,
        claims=tuple(claim for claim in run.claims if claim.event.candidate == candidate),
        assessments=tuple(claim for claim in run.assessments if claim.event.candidate == candidate),
    )


def _with_request(run: RunState, recorded: Recorded[Event]) -> RunState:
    """Keep the newest request until it is answered, withdrawn, or about a candidate that was replaced.

    A request gives each phase one attempt. A fault of the machine or a benchmark without a decision answers it, so
    that no worker repeats it for ever.
    """
    request = recorded if holds(recorded, WorkRequested) else run.request
    if request is None:
        return run
    answered = isinstance(recorded.event, WorkWithdrawn | VerificationErrored | BenchmarkErrored | BenchmarkFailed)
    candidate = run.submitted.event.candidate if run.submitted else None
    stands = not answered and candidate == request.event.candidate and run.state in WAITING[request.event.until]
    return replace(run, request=request if stands else None)
