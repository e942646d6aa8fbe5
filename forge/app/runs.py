"""Where a run stands, what comes next, and how it ends."""

from forge.app.workspace import Workspace
from forge.domain.task import Task
from forge.errors import PhaseOutOfOrder
from forge.events import RunAborted
from forge.projections.runs import RunState

NEXT = {
    "planned": "forge prompt {run}",
    "prompt_ready": "forge submit {run} DIR",
    "candidate_ready": "forge verify {run}",
    "verified": "forge bench {run}",
    "benchmarked": "forge promote {run}",
}
"""What comes next for a run in a given state; every other state is an end."""


def require_state(run: RunState, state: str, *, phase: str) -> None:
    """Raise PhaseOutOfOrder, with the command that fits, unless the run is in the state a phase needs."""
    if run.state == state:
        return
    following = NEXT.get(run.state)
    hint = following.format(run=run.run_id) if following else f"forge run open {run.task_id}"
    raise PhaseOutOfOrder(f"run {run.run_id!r} is {run.state}, {phase} needs one that is {state}", hint=hint)


def task_of(run: RunState) -> Task:
    """The task a run is for."""
    if run.task is None:
        raise PhaseOutOfOrder(f"run {run.run_id!r} names a task that isn't recorded")
    return run.task.event.task


def take_up(workspace: Workspace, run: RunState) -> RunState:
    """Finish what a crash left half done: a run that has come to its end but isn't sealed yet."""
    ends = {"promoted": "promoted", "denied": "denied", "rejected": "rejected", "failed": "failed"}
    if run.state in ends and not run.sealed:
        workspace.seal(run.run_id, ends[run.state])
        return workspace.find_run(run.run_id)
    return run


def abort(workspace: Workspace, run: RunState, reason: str) -> None:
    """Close a run without an outcome."""
    if run.sealed or run.state == "aborted":
        raise PhaseOutOfOrder(f"run {run.run_id!r} is closed already ({run.state})")
    event = RunAborted(run_id=run.run_id, reason=reason)
    workspace.append((event,), run_id=run.run_id, key=f"abort:{run.run_id}")
