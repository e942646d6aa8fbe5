"""What was ever tried: the fold behind `history.db`, for audits of candidates, benchmarks and claims.

The fold keeps plain rows, so that a long history costs little memory; the tables themselves (SQLModel) are
only loaded when the file is written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from forge.domain.digest import Digest
from forge.domain.task import Task
from forge.events import Event, Recorded
from forge.events.benchmark import BenchmarkFailed, BenchmarkInvalidated, BenchmarkRecorded
from forge.events.candidate import CandidateRejected, CandidateSubmitted, ClaimAssessed, ClaimRecorded
from forge.events.create import TaskCreated
from forge.events.environment import EnvironmentCaptured
from forge.events.promote import PromotionDenied
from forge.events.run import RunAborted, RunSealed, RunStarted
from forge.projections.fold import Position, holds
from forge.projections.registry import RegistryState, ordered
from forge.projections.rows import (
    UNASSESSED,
    Row,
    assessment_columns,
    benchmark_rows,
    candidate_row,
    claim_row,
    kernel_row,
    rejection_row,
    slot,
)
from forge.projections.runs import Attempts, Stage, phase_of, run_of, stage_after

PROJECTOR_VERSION = 1
FILE = "history.db"


@dataclass(frozen=True, slots=True)
class RunLine:
    """What a run's row needs."""

    started: Recorded[RunStarted]
    state: Stage
    sealed: bool
    outcome: str | None
    attempts: Attempts
    last_seq: int


@dataclass(frozen=True, slots=True)
class HistoryState:
    """The rows after some prefix of the ledger. Values handed out are never changed."""

    tasks: dict[str, Task] = field(default_factory=dict)
    environments: dict[Digest, EnvironmentCaptured] = field(default_factory=dict)
    runs: dict[str, RunLine] = field(default_factory=dict)
    candidates: list[Row] = field(default_factory=list)
    benchmarks: list[tuple[int, Row]] = field(default_factory=list)
    """By the place of the event."""
    rejections: list[Row] = field(default_factory=list)
    claims: list[tuple[tuple[str, str], Row]] = field(default_factory=list)
    """By (run, claim)."""
    assessed: dict[tuple[str, str], Row] = field(default_factory=dict)
    """(run, claim) -> the columns that the latest assessment fills."""
    invalidated: dict[int, int] = field(default_factory=dict)
    """Benchmark -> the first event that withdrew it."""

    def copied(self) -> "HistoryState":
        """A state of its own that `take` may extend."""
        return HistoryState(
            tasks=dict(self.tasks),
            environments=dict(self.environments),
            runs=dict(self.runs),
            candidates=list(self.candidates),
            benchmarks=list(self.benchmarks),
            rejections=list(self.rejections),
            claims=list(self.claims),
            assessed=dict(self.assessed),
            invalidated=dict(self.invalidated),
        )


EMPTY = HistoryState()


def apply(state: HistoryState, recorded: Recorded[Event]) -> HistoryState:
    """The history after one more event; `state` stays as it was."""
    return fold(state, (recorded,))


def fold(state: HistoryState, events: Iterable[Recorded[Event]]) -> HistoryState:
    """The history after `events`, in one pass; `state` stays as it was."""
    own = state.copied()
    for recorded in events:
        take(own, recorded)
    return own


def take(own: HistoryState, recorded: Recorded[Event]) -> None:
    """Extend a state that nobody else holds (see `HistoryState.copied`) by one event."""
    _take_run(own, recorded)
    if holds(recorded, TaskCreated):
        own.tasks.setdefault(recorded.event.task_id, recorded.event.task)
    elif holds(recorded, EnvironmentCaptured):
        own.environments[recorded.event.env_sha256] = recorded.event
    elif holds(recorded, CandidateSubmitted):
        own.candidates.append(candidate_row(recorded, own.tasks.get(recorded.event.task_id)))
    elif holds(recorded, CandidateRejected):
        own.rejections.append(rejection_row(recorded, stage=recorded.event.stage))
    elif holds(recorded, PromotionDenied):
        own.rejections.append(rejection_row(recorded, stage="promote"))
    elif holds(recorded, ClaimRecorded):
        own.claims.append(((recorded.event.run_id, recorded.event.claim_id), claim_row(recorded)))
    elif holds(recorded, ClaimAssessed):
        own.assessed[recorded.event.run_id, recorded.event.claim_id] = assessment_columns(recorded)
    else:
        _take_benchmark(own, recorded)


def _take_benchmark(own: HistoryState, recorded: Recorded[Event]) -> None:
    if holds(recorded, BenchmarkInvalidated):
        own.invalidated.setdefault(recorded.event.benchmark_seq, recorded.seq)
    elif holds(recorded, BenchmarkRecorded) or holds(recorded, BenchmarkFailed):
        event = recorded.event
        task, captured = own.tasks.get(event.task_id), own.environments.get(event.env_sha256)
        own.benchmarks.extend((recorded.seq, row) for row in benchmark_rows(recorded, task, captured))
    if holds(recorded, BenchmarkFailed):
        own.rejections.append(rejection_row(recorded, stage="benchmark"))


def _take_run(own: HistoryState, recorded: Recorded[Event]) -> None:
    """Move the event's run on; events of a run that never started leave no row (`runs` refuses them)."""
    event = recorded.event
    if holds(recorded, RunStarted):
        own.runs[recorded.event.run_id] = RunLine(recorded, "planned", False, None, Attempts(), recorded.seq)
        return
    run_id = run_of(event)
    run = own.runs.get(run_id) if run_id else None
    if run_id is None or run is None:
        return
    match event:
        case RunSealed():
            outcome: str | None = event.outcome
        case RunAborted():
            outcome = event.reason
        case _:
            outcome = run.outcome
    own.runs[run_id] = RunLine(
        started=run.started,
        state=stage_after(run.state, event, sealed=run.sealed),
        sealed=run.sealed or isinstance(event, RunSealed),
        outcome=outcome,
        attempts=run.attempts.plus(phase_of(event)),
        last_seq=recorded.seq,
    )


def rows(state: HistoryState, registry: RegistryState) -> Mapping[str, list[Row]]:
    """Table name -> its rows in the order of insertion."""
    return {
        "kernels": [kernel_row(kernel) for kernel in ordered(registry)],
        "candidates": state.candidates,
        "benchmarks": [{**row, "invalidated_seq": state.invalidated.get(seq)} for seq, row in state.benchmarks],
        "rejections": state.rejections,
        "claims": [{**row, **state.assessed.get(key, UNASSESSED)} for key, row in state.claims],
        "runs": [_run_row(state, run) for run in state.runs.values()],
    }


def _run_row(state: HistoryState, run: RunLine) -> Row:
    event = run.started.event
    task = state.tasks.get(event.task_id)
    return {
        "run_id": event.run_id,
        "task_id": event.task_id,
        **slot(task),
        "language": task.language if task else None,
        "command": event.command,
        "actor": run.started.actor,
        "state": run.state,
        "sealed": run.sealed,
        "outcome": run.outcome,
        "submit_attempts": run.attempts.submit,
        "verify_attempts": run.attempts.verify,
        "benchmark_attempts": run.attempts.benchmark,
        "promote_attempts": run.attempts.promote,
        "started_seq": run.started.seq,
        "last_seq": run.last_seq,
        "recorded_at": run.started.recorded_at,
    }


def render(state: HistoryState, registry: RegistryState, position: Position) -> bytes:
    """The whole of `history.db`; the same events give the same bytes."""
    from forge.projections.sqlite_file import sqlite_file
    from forge.projections.tables import SCHEMA_VERSION, TABLES

    cursor: Row = {
        "ledger_id": position.ledger_id,
        "seq": position.seq,
        "event_hash": position.event_hash,
        "schema_version": SCHEMA_VERSION,
        "projector_version": PROJECTOR_VERSION,
    }
    return sqlite_file(TABLES.metadata, {**rows(state, registry), "cursor": [cursor]}, version=SCHEMA_VERSION)
