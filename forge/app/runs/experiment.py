"""Closes experiments: finds what a decided candidate is based on, and records what its change showed."""

from forge.app.incumbent import incumbent_kernel
from forge.app.workspace import Workspace
from forge.domain.digest import Digest
from forge.events import (
    BenchmarkFailed,
    BenchmarkRecorded,
    EnvironmentCaptured,
    Recorded,
)
from forge.pipeline.experiment import Decision, Parent, Timed, close
from forge.projections.runs import RunState


def close_experiment(workspace: Workspace, run: RunState, *, actor: str) -> None:
    """Record how the run's experiment ended, once, if its candidate was decided.

    Only events before the decision are read, so that a second call gives the same.
    """
    decided = _decision(run)
    if run.submitted is None or decided is None:
        return
    closed = close(
        run.submitted.event, decided.event, decided_seq=decided.seq, parents=_parents(workspace, run, decided)
    )
    if closed is not None:
        key = f"experiment:{run.run_id}:{decided.seq}"
        workspace.append((closed,), run_id=run.run_id, key=key, causation_id=decided.event_id, actor=actor)


def _decision(run: RunState) -> Recorded[Decision] | None:
    """Return the latest event that judged the candidate."""
    found: list[Recorded[Decision]] = [one for one in (run.benchmark, run.failure, run.rejection) if one is not None]
    return max(found, key=lambda one: one.seq, default=None)


def _parents(workspace: Workspace, run: RunState, decided: Recorded[Decision]) -> list[Parent]:
    """Return the candidates from which this one says it was made."""
    assert run.submitted is not None
    named = run.submitted.event.parents
    if not named or not isinstance(decided.event, Timed) or run.task is None:
        return []
    incumbent = incumbent_kernel(workspace, run.task.event.task.family, before_seq=decided.seq)
    return [
        Parent(
            candidate=parent,
            timed=_timed(workspace, parent, like=decided.event, before_seq=decided.seq),
            promoted=incumbent is not None and incumbent.candidate == parent,
        )
        for parent in named
        if parent != run.submitted.event.candidate
    ]


def _timed(workspace: Workspace, candidate: Digest, *, like: Timed, before_seq: int) -> Timed | None:
    """Return the candidate's latest benchmark for the same task, with the same clock on a comparable machine."""
    machine, clock = _perf_key(workspace, like.env_sha256), _clock(workspace, like)
    latest: Timed | None = None
    for recorded in workspace.ledger.read(stream=f"candidate:{candidate}"):
        event = recorded.event
        if recorded.seq >= before_seq or not isinstance(event, BenchmarkRecorded | BenchmarkFailed):
            continue
        same = event.task_id == like.task_id and _perf_key(workspace, event.env_sha256) == machine
        if same and clock is not None and _clock(workspace, event) == clock:
            latest = event
    return latest


def _clock(workspace: Workspace, timed: Timed) -> str | None:
    """Return the protocol of its samples; None if nothing was timed."""
    from forge.pipeline.samples import protocol_of  # the lab's timing comes with it

    return protocol_of(workspace.blobs.get(timed.workloads[0].samples_sha256)) if timed.workloads else None


def _perf_key(workspace: Workspace, env_sha256: Digest) -> Digest | None:
    for recorded in workspace.ledger.read(stream=f"env:{env_sha256}"):
        if isinstance(recorded.event, EnvironmentCaptured):
            return recorded.event.perf_key
    return None
