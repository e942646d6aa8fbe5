"""The whole loop on the examples that ship with Forge, in a workspace of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forge.app.phases import bench, promote_candidate, submit, verify_candidate
from forge.app.reads import outcome
from forge.app.tasks import create_task, open_run
from forge.app.workspace import Workspace
from forge.errors import EnvironmentUnfit
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateVerified, Event
from forge.lab.job import Progress
from forge.lookup import Registry
from forge.pipeline.benchmark import undecided
from forge.pipeline.create import Request

SHAPE = {"batch": 16, "hidden_size": 4096}
ATTEMPTS = 2
"""An inconclusive benchmark is repeated once; both attempts count."""


@dataclass(frozen=True)
class Told:
    """What the demonstration came to."""

    home: str
    honest_run: str
    cheat_run: str
    benchmark: dict[str, object]
    promoted: dict[str, object] | None
    refused: dict[str, object]
    claims: list[dict[str, object]]
    lookup: dict[str, object]


def examples_folder() -> Path:
    """Where the examples are: in a source checkout or in an installed package; raise EnvironmentUnfit."""
    package = Path(__file__).parent.parent
    for folder in (package / "_examples", package.parent / "examples"):
        if (folder / "honest_cpp" / "kernel.py").exists():
            return folder
    raise EnvironmentUnfit("the shipped examples are missing: expected them in the package; install Forge again")


def demonstrate(workspace: Workspace, *, progress: Callable[[str], Progress]) -> Told:
    """Promote an honest kernel, refuse a cheat, look the slot up."""
    examples = examples_folder()
    request = Request(
        op="fused_add_rmsnorm", language="cpp", gpu="cpu", dtype="fp32", shape="batch=16,hidden_size=4096"
    )
    opened = create_task(workspace, request)
    timed, promoted = _honest(workspace, opened.run_id, examples / "honest_cpp", progress)
    cheat = open_run(workspace, opened.task_id).run_id
    submit(workspace, workspace.find_run(cheat), examples / "cached_answer", author="forge demo")
    caught = verify_candidate(workspace, workspace.find_run(cheat), progress=progress("a cheat: verify"))
    state = workspace.find_run(opened.run_id)
    return Told(
        home=str(workspace.home),
        honest_run=opened.run_id,
        cheat_run=cheat,
        benchmark=outcome(timed, workspace=workspace),
        promoted=outcome(promoted, workspace=workspace) if promoted else None,
        refused=outcome(caught, workspace=workspace),
        claims=[assessed.event.model_dump(mode="json") for assessed in state.assessments],
        lookup=_look_up(workspace.registry_root),
    )


def _honest(
    workspace: Workspace, run_id: str, folder: Path, progress: Callable[[str], Progress]
) -> tuple[Event, Event | None]:
    submit(workspace, workspace.find_run(run_id), folder, author="forge demo")
    verified = verify_candidate(workspace, workspace.find_run(run_id), progress=progress("an honest kernel: verify"))
    if not isinstance(verified, CandidateVerified):
        return verified, None
    timed: Event = verified
    for _ in range(ATTEMPTS):
        timed = bench(workspace, workspace.find_run(run_id), progress=progress("an honest kernel: benchmark"))
        if not (isinstance(timed, BenchmarkFailed) and undecided(timed.reason)):
            break
    if not isinstance(timed, BenchmarkRecorded):
        return timed, None
    return timed, promote_candidate(workspace, workspace.find_run(run_id))


def _look_up(registry: Path) -> dict[str, object]:
    found = Registry.open(registry).lookup(op="fused_add_rmsnorm", gpu="cpu", dtype="fp32", shape=SHAPE)
    kernel = found.kernel
    return {
        "match": found.match,
        "kernel_id": kernel.kernel_id if kernel else None,
        "rejected": [list(item) for item in found.rejected],
    }
