"""Work on request: records who wants a run's phases to be run, and lists the requests that stand.

The ledger is the queue: open work is a fold of it, and a worker takes a run by a lock that its death releases.
"""

from forge.app.runs.refused_requests import recording_refusal
from forge.app.runs.states import finish_phase, require_state, task_of, what_comes_next
from forge.app.user.given_reason import require_reason
from forge.app.workspace import Workspace
from forge.domain.another_run import IN_ANOTHER_RUN
from forge.errors import ActorForbidden, PhaseOutOfOrder
from forge.events import Recorded, WorkRequested, WorkWithdrawn
from forge.events.work import LastPhase
from forge.ledger.actor_rights import actor_class
from forge.projections.fold import holds
from forge.projections.run_lookup import run_state
from forge.projections.runs import WAITING, RunsState, RunState

__all__ = ["LastPhase", "open_requests", "open_work", "request_summary", "request_work", "withdraw_work"]


def request_work(workspace: Workspace, run: RunState, until: LastPhase) -> Recorded[WorkRequested]:
    """Ask workers to run a run's phases up to `until`; a request that stands is returned and not repeated.

    Raises PhaseOutOfOrder for a run that has no candidate, has ended, or has been through these phases; that is
    recorded too.
    """
    with recording_refusal(workspace, "work", run.run_id):
        return _requested(workspace, run, until)


def _requested(workspace: Workspace, run: RunState, until: LastPhase) -> Recorded[WorkRequested]:
    run = finish_phase(workspace, run)
    if run.request is not None and run.request.event.until == until:
        return run.request
    if run.submitted is None:
        require_state(run, "candidate_ready", phase="work")
    failed = run.failure.event.reason.message if run.failure else ""
    if run.submitted is None or run.state not in WAITING[until] or failed.endswith(IN_ANOTHER_RUN):
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} is {run.state}: expected a run with phases up to {until} still to be run",
            hint=what_comes_next(run),
        )
    event = WorkRequested(run_id=run.run_id, candidate=run.submitted.event.candidate, until=until)
    workspace.append((event,), run_id=run.run_id, key=f"request:{run.run_id}:{run.last_seq}")
    recorded = workspace.find_run(run.run_id).request
    assert recorded is not None
    return recorded


def withdraw_work(workspace: Workspace, run: RunState, reason: str) -> None:
    """Withdraw the request of a run; a worker that has begun a phase finishes it.

    Raises PhaseOutOfOrder without a request, and ActorForbidden for an agent and a request that isn't its own.
    """
    if run.request is None:
        raise PhaseOutOfOrder(f"run {run.run_id!r} has no open request to withdraw", hint="forge work list")
    if actor_class(workspace.actor) == "agent" and run.request.actor != workspace.actor:
        raise ActorForbidden(
            f"{workspace.actor!r} may not withdraw a request of {run.request.actor!r}: an agent withdraws its own"
        )
    require_reason(reason)
    event = WorkWithdrawn(run_id=run.run_id, reason=reason)
    workspace.append((event,), run_id=run.run_id, key=f"withdraw:{run.run_id}:{run.request.seq}")


def open_work(state: RunsState) -> list[RunState]:
    """Return the runs with a request that stands, the oldest request first."""
    waiting = [(run.request.seq, run) for run in state.runs.values() if run.request is not None]
    return [run for _, run in sorted(waiting, key=lambda one: one[0])]


def open_requests(workspace: Workspace) -> list[RunState]:
    """Return the runs with a request that stands, as `open_work` does; only runs with a request are read."""
    asked = dict.fromkeys(
        recorded.event.run_id
        for recorded in workspace.ledger.read(types=(WorkRequested.TYPE,))
        if holds(recorded, WorkRequested)
    )
    return open_work(RunsState(runs={name: run_state(workspace.ledger, name) for name in asked}))


def request_summary(run: RunState) -> dict[str, object]:
    """Return a run with an open request, as data for a table or for JSON."""
    assert run.request is not None
    return {
        "run_id": run.run_id,
        "task_id": run.task_id,
        "target": task_of(run).target.gpu,
        "state": run.state,
        "until": run.request.event.until,
        "requested_by": run.request.actor,
        "requested_at": run.request.recorded_at,
        "seq": run.request.seq,
    }
