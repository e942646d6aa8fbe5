"""Says in which state a run is and what comes next, and ends runs."""

from forge.app.runs.experiment import close_experiment
from forge.app.stored.run_summary import next_of
from forge.app.user.given_reason import require_reason
from forge.app.workspace import Workspace
from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED
from forge.errors import PhaseOutOfOrder
from forge.events import BenchmarkFailed, RunAborted
from forge.pipeline import claims
from forge.projections.runs import RunState

GATE = "system:gate"
"""Actor of evidence and decisions: Forge's own phases."""

ENDS = frozenset({"promoted", "denied", "rejected", "failed"})
"""Outcomes with which a run is sealed."""


def require_state(run: RunState, state: str, *, phase: str) -> None:
    """Raise PhaseOutOfOrder, with the right command, unless the run is in the state that a phase needs."""
    if run.state == state:
        return
    raise PhaseOutOfOrder(
        f"run {run.run_id!r} is {run.state}: {phase} expects a run that is {state}", hint=what_comes_next(run)
    )


def what_comes_next(run: RunState) -> str:
    """Return the command that continues a run; if the run has ended, the one that opens another."""
    return next_of(run) or f"forge run open {run.task_id}"


def task_of(run: RunState) -> Task:
    """Return the task of a run.

    Raises PhaseOutOfOrder if this ledger doesn't record it.
    """
    if run.task is None:
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} names task {run.task_id!r}, which isn't recorded: expected a task of this ledger",
            hint="forge ledger verify --full",
        )
    return run.task.event.task


def finish_phase(workspace: Workspace, run: RunState) -> RunState:
    """Finish the work after a phase, also after a kill: claims, the experiment, a seal, a publication."""
    if run.sealed:
        if run.end is not None and workspace.published_seq < run.end.seq:
            workspace.publish()
        return run
    _assess_claims(workspace, run)
    close_experiment(workspace, run, actor=GATE)
    if run.state in ENDS:
        workspace.seal(run.run_id, run.state)
    return workspace.find_run(run.run_id)


def _assess_claims(workspace: Workspace, run: RunState) -> None:
    timed = run.benchmark or run.failure
    if timed is None or run.assessments:
        return
    stopped = timed.event.stopped if isinstance(timed.event, BenchmarkFailed) else None
    if not timed.event.workloads and stopped is None:
        return
    if run.benchmark is None and run.failure and run.failure.event.reason.code in UNDECIDED:
        return
    made = (claim.event for claim in run.claims)
    if stopped is not None:
        assessed = claims.assess_stopped(made, stopped, benchmark_seq=timed.seq)
    else:
        assessed = claims.assess(made, timed.event.workloads[0], benchmark_seq=timed.seq)
    if assessed:
        workspace.append(assessed, run_id=run.run_id, key=f"assess:{run.run_id}:{timed.seq}", actor=GATE)


def abort(workspace: Workspace, run: RunState, reason: str) -> None:
    """Close a run without an outcome; a run that has ended is sealed instead.

    Raises PhaseOutOfOrder if it has ended.
    """
    run = finish_phase(workspace, run)
    ended = run.end.event if run.end else None
    if isinstance(ended, RunAborted) and ended.reason == reason:
        return
    if run.sealed or run.state == "aborted":
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} has ended ({run.state}): expected a run that is still open", hint="forge run list"
        )
    require_reason(reason)
    event = RunAborted(run_id=run.run_id, reason=reason)
    workspace.append((event,), run_id=run.run_id, key=f"abort:{run.run_id}")
