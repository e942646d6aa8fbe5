"""What a workspace's owner and its phases do, one act at a time, through the functions that the commands call.

Judging and timing need a wall and minutes; their outcomes are recorded here as the phases record them.
Each act picks what it is about by a number, and says whether there was anything to do.
"""

from collections.abc import Callable
from pathlib import Path

from forge.app.kernels import decisions
from forge.app.ledger import signing
from forge.app.ledger.bundles import take_in
from forge.app.phases.phases import promote_candidate
from forge.app.runs.states import GATE, abort
from forge.app.tasks.create import create_task, open_run
from forge.app.tasks.known_tasks import find_task
from forge.app.workspace import Workspace
from forge.domain.verdict import Reason
from forge.errors import AlreadyDecided
from forge.events import BenchmarkRecorded, CandidateRejected, KernelPromoted, TaskCreated
from forge.pipeline.create import TaskRequest
from forge.projections.runs import RunState
from tests.app.prepared import benchmarked, submitted, verified

SLOT = {"op": "fused_add_rmsnorm", "gpu": "cpu", "dtype": "fp32"}
SHAPE = {"batch": 16, "hidden_size": 4096}
BUNDLES = "bundles"
"""Folder in the workspace with exports of another ledger, the shorter ones first."""
REASON = "found wrong at odd sizes"
Act = Callable[[Workspace, int], bool]


def create(workspace: Workspace, pick: int) -> bool:
    """A task, and its first run."""
    shape = ",".join(f"{axis}={size}" for axis, size in SHAPE.items())
    create_task(workspace, TaskRequest(**SLOT, language="cpp", shape=shape))
    return True


def another_run(workspace: Workspace, pick: int) -> bool:
    created = [one.event for one in workspace.ledger.read(types=("TaskCreated",))]
    names = [event.task_id for event in created if isinstance(event, TaskCreated)]
    open_run(workspace, find_task(workspace, names[pick % len(names)]).task_id)
    return True


def advance(workspace: Workspace, pick: int) -> bool:
    """A run's next phase, with an outcome that leads on."""
    run = _picked(workspace, pick, "prompt_ready", "candidate_ready", "verified", "benchmarked")
    if run is None:
        return False
    match run.state:
        case "prompt_ready":
            submitted(workspace, run.run_id)
        case "candidate_ready":
            verified(workspace, run.run_id)
        case "verified":
            benchmarked(workspace, run.run_id)
        case _:
            promote_candidate(workspace, run)
    return True


def reject(workspace: Workspace, pick: int) -> bool:
    """A gate refuses the candidate."""
    run = _picked(workspace, pick, "candidate_ready")
    if run is None or run.submitted is None:
        return False
    event = CandidateRejected(
        run_id=run.run_id,
        task_id=run.task_id,
        candidate=run.submitted.event.candidate,
        stage="verify",
        reason=Reason(code="INCORRECT_NUMERICAL", message="3.2 x the bound"),
    )
    key = f"verify:{run.run_id}:{run.attempts.verify + 1}"
    workspace.append((event,), run_id=run.run_id, key=key, actor=GATE)
    workspace.seal(run.run_id, "rejected")
    return True


def give_up(workspace: Workspace, pick: int) -> bool:
    run = _picked(workspace, pick, "prompt_ready", "candidate_ready", "verified", "benchmarked")
    if run is None:
        return False
    abort(workspace, run, "no process works on it")
    return True


def revoke(workspace: Workspace, pick: int) -> bool:
    kernels = promoted(workspace)
    return bool(kernels) and _decided(
        lambda: decisions.revoke(workspace, kernels[pick % len(kernels)], reason=REASON, severity="wrong_result")
    )


def deprecate(workspace: Workspace, pick: int) -> bool:
    kernels = promoted(workspace)
    return bool(kernels) and _decided(
        lambda: decisions.deprecate(workspace, kernels[pick % len(kernels)], reason=REASON, superseded_by=None)
    )


def invalidate(workspace: Workspace, pick: int) -> bool:
    found = workspace.ledger.read(types=("BenchmarkRecorded",))
    seqs = [one.seq for one in found if isinstance(one.event, BenchmarkRecorded)]
    return bool(seqs) and _decided(
        lambda: decisions.invalidate(workspace, seqs[pick % len(seqs)], reason="the clock was unsteady")
    )


def checkpoint(workspace: Workspace, pick: int) -> bool:
    signing.checkpoint(workspace, new_key=False, copy=None)
    return True


def rotate_key(workspace: Workspace, pick: int) -> bool:
    signing.rotate_key(workspace)
    return True


def import_bundle(workspace: Workspace, pick: int) -> bool:
    """Another ledger's events; an older bundle, or the same one again, adds nothing."""
    bundles = sorted((workspace.home / BUNDLES).iterdir())
    take_in(workspace, bundles[pick % len(bundles)], key=None, progress=silent)
    return True


ACTS: dict[str, Act] = {
    act.__name__: act
    for act in (
        *(create, another_run, advance, reject, give_up),
        *(revoke, deprecate, invalidate, checkpoint, rotate_key, import_bundle),
    )
}


def act(home: Path, name: str, pick: int) -> bool:
    """Open the workspace, do one thing, close it."""
    with Workspace.open(home) as workspace:
        return ACTS[name](workspace, pick)


def promoted(workspace: Workspace) -> list[str]:
    """Every kernel there ever was, oldest first."""
    events = [one.event for one in workspace.ledger.read(types=("KernelPromoted",))]
    return [event.kernel_id for event in events if isinstance(event, KernelPromoted)]


def silent(_: str) -> None:
    """Ignore the progress."""


def _picked(workspace: Workspace, pick: int, *states: str) -> RunState | None:
    fitting = [run for run in workspace.run_states().runs.values() if run.state in states]
    return fitting[pick % len(fitting)] if fitting else None


def _decided(decide: Callable[[], object]) -> bool:
    try:
        decide()
    except AlreadyDecided:
        return False
    return True
